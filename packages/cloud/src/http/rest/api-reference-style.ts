import { Html } from './html-template.ts';

/** The look of the reference page: two columns where there is room, the reader's own choice of light or dark. */
export const referenceStyle = new Html(`
:root {
  color-scheme: light dark;
  --paper: #ffffff; --panel: #f5f7f9; --ink: #1b2530; --soft: #5b6876; --line: #dde3e9; --link: #0a5fb8; --mark: #fff6d6;
  --get: #0a5fb8; --post: #13743a; --put: #8a5300; --patch: #8a5300; --delete: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12171d; --panel: #1a2129; --ink: #dfe6ed; --soft: #97a5b3; --line: #2c3641; --link: #7db8f5; --mark: #2e2a16;
    --get: #7db8f5; --post: #74cf98; --put: #e3b25f; --patch: #e3b25f; --delete: #f2958f;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
code { font: 0.875em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
p { margin: 0.5rem 0; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.25rem 1rem 2rem 1.25rem; background: var(--panel); border-right: 1px solid var(--line); font-size: 0.875rem; overflow-wrap: anywhere; }
nav .title { font-size: 1.0625rem; font-weight: 650; }
nav .title a, nav li a { color: inherit; }
nav h2 { margin: 1.25rem 0 0.25rem; font-size: 0.75rem; letter-spacing: 0.05em; text-transform: uppercase; }
nav h2 a { color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: flex; gap: 0.5rem; align-items: baseline; padding: 0.1875rem 0; }
main { padding: 2rem clamp(1rem, 4vw, 3.5rem) 6rem; max-width: 68rem; }
h1 { margin: 0; font-size: 1.875rem; line-height: 1.2; }
small { color: var(--soft); font-size: 0.8125em; font-weight: 400; }
main h2 { margin: 3rem 0 0.5rem; font-size: 1.375rem; }
h3 { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 0.25rem 1rem; margin: 0; font-size: 1.0625rem; font-weight: 600; }
h3 > a { color: inherit; min-width: 0; }
h4 { margin: 1.25rem 0 0.375rem; font-size: 0.8125rem; color: var(--soft); letter-spacing: 0.04em; text-transform: uppercase; }
dl.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.375rem 1.25rem; margin: 1.25rem 0 0; padding: 1rem 1.25rem; background: var(--panel); border-radius: 0.5rem; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; }
dl.facts p { margin: 0; }
article { margin: 1rem 0; padding: 1rem 1.25rem 1.25rem; border: 1px solid var(--line); border-radius: 0.5rem; }
article:target { border-color: var(--link); background: color-mix(in srgb, var(--mark) 45%, var(--paper)); }
article .summary { font-weight: 600; margin-top: 0.75rem; }
.method { display: inline-block; flex: none; min-width: 3.75rem; padding: 0 0.375rem; border-radius: 0.25rem; text-align: center; font: 700 0.6875rem/1.5rem ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
nav .method { min-width: 3.25rem; font-size: 0.625rem; line-height: 1.125rem; }
${['get', 'post', 'put', 'patch', 'delete'].map((method) => `.${method} { color: var(--${method}); background: color-mix(in srgb, var(--${method}) 13%, transparent); }`).join('\n')}
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 0.9375rem; }
th { padding: 0.25rem 0.75rem 0.25rem 0; color: var(--soft); font-size: 0.8125rem; font-weight: 500; text-align: left; }
td { padding: 0.4375rem 0.75rem 0.4375rem 0; border-top: 1px solid var(--line); vertical-align: top; }
td:first-child { width: 30%; white-space: nowrap; }
td:nth-child(2) { width: 22%; }
.answers > tbody > tr > td:first-child { width: 4.5rem; }
.answers > tbody > tr > td:nth-child(2) { width: auto; }
tr.form td { color: var(--soft); font-size: 0.8125rem; font-style: italic; }
${[1, 2, 3, 4, 5, 6].map((level) => `td.level-${level} { padding-left: ${level * 1.25}rem; }`).join('\n')}
.required { color: var(--delete); font-size: 0.75rem; }
.limits { color: var(--soft); font-size: 0.875rem; }
summary { cursor: pointer; color: var(--link); }
@media (max-width: 56rem) {
  body { display: block; }
  nav { position: static; height: auto; max-height: 45vh; border-right: 0; border-bottom: 1px solid var(--line); }
  article { padding: 0.875rem; }
  .fields { min-width: 34rem; }
}
@media print { nav { display: none; } body { display: block; } article { break-inside: avoid; } }
`);
