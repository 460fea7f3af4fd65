import type { DocsGroup } from './docs-navigation.ts';

/** A heading of a page. */
export interface OutlineEntry {
  id: string;
  text: string;
  depth: number;
}

export interface DocsPage {
  title: string;
  groups: readonly DocsGroup[];
  /** The address of the page below /docs/. */
  path: string;
  /** HTML. */
  content: string;
  outline: readonly OutlineEntry[];
  /** What was searched for. */
  query?: string;
  before?: { path: string; title: string } | undefined;
  after?: { path: string; title: string } | undefined;
}

/** A page with its navigation. It needs no script. */
export function docsHtml({
  title,
  groups,
  path,
  content,
  outline,
  query = '',
  before,
  after,
}: DocsPage): string {
  const navigation = groups
    .map(
      (group) =>
        `<h2>${escapeHtml(group.title)}</h2><ul>${group.pages
          .map(
            (page) =>
              `<li><a href="/docs/${page.path}"${page.path === path ? ' aria-current="page"' : ''}>` +
              `${escapeHtml(page.title)}</a></li>`,
          )
          .join('')}</ul>`,
    )
    .join('');
  const contents =
    outline.length < 2
      ? ''
      : `<nav class="outline" aria-label="On this page"><h2>On this page</h2><ul>${outline
          .map(
            ({ id, text, depth }) =>
              `<li class="depth${depth}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
          )
          .join('')}</ul></nav>`;
  const neighbour = (page: DocsPage['before'], word: string): string =>
    page === undefined
      ? '<span></span>'
      : `<a href="/docs/${page.path}">${word}: ${escapeHtml(page.title)}</a>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title === 'Berth' ? '' : `${escapeHtml(title)} · `}Berth</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<a class="home" href="/docs/">Berth</a>
<form action="/docs/search" role="search">
<input type="search" name="q" value="${escapeHtml(query)}"
  placeholder="Search" aria-label="Search the documentation">
</form>
<a class="menu" href="#pages">Pages</a> <a href="/">Console</a> <a href="/v2/docs">API reference</a>
</header>
<div class="columns">
<nav class="pages" id="pages" aria-label="Pages">${navigation}</nav>
<main>${content}<footer>${neighbour(before, 'Before')}${neighbour(after, 'Next')}</footer></main>
${contents}
</div>
</body>
</html>
`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ESCAPES[character as keyof typeof ESCAPES]);
}

const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' } as const;

const STYLE = `
:root {
  color-scheme: light dark; --line: light-dark(#d9dde3, #343a42);
  --soft: light-dark(#f4f6f8, #1b1f24); --text: light-dark(#1c2127, #dfe3e8);
  --quiet: light-dark(#565f6b, #9aa4b0); --link: light-dark(#0b5bd3, #79aefc);
  --page: light-dark(#fff, #121519);
}
* { box-sizing: border-box; }
html { scroll-padding-top: 4rem; }
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.6 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
header {
  position: sticky; top: 0; z-index: 1; display: flex; gap: 1rem; align-items: center;
  padding: .6rem 1.2rem; background: var(--page); border-bottom: 1px solid var(--line);
}
header form { flex: 1; }
.home { font-weight: 700; color: var(--text); }
input {
  width: 100%; max-width: 26rem; padding: .4rem .7rem; font: inherit; color: inherit;
  background: var(--soft); border: 1px solid var(--line); border-radius: 6px;
}
.columns { display: grid; grid-template-columns: 15rem minmax(0, 1fr); max-width: 90rem; margin: 0 auto; }
nav { padding: 1.2rem; font-size: .9rem; }
nav h2 { margin: 1.2rem 0 .3rem; font-size: .9rem; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav a { display: block; padding: .15rem 0; color: var(--quiet); }
nav a[aria-current] { color: var(--link); font-weight: 600; }
nav h2:first-child { margin-top: 0; }
.menu, .outline { display: none; }
.depth3 { padding-left: .8rem; }
main { padding: .5rem 1.5rem 4rem; max-width: 54rem; }
main h2 { margin-top: 2.2rem; padding-top: 1rem; border-top: 1px solid var(--line); }
main :is(h1, h2, h3, h4) a { color: inherit; }
main :is(h1, h2, h3, h4, p, li, td, th) { overflow-wrap: anywhere; }
code {
  font: .875em/1.5 ui-monospace, monospace; background: var(--soft); padding: .1em .3em;
  border-radius: 4px;
}
figure { margin: 1rem 0; }
figcaption { font-size: .85rem; color: var(--quiet); }
pre {
  margin: 0; padding: .8rem 1rem; overflow-x: auto; background: var(--soft);
  border: 1px solid var(--line); border-radius: 8px;
}
pre code { padding: 0; background: none; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { padding: .4rem .6rem; border: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--soft); }
.actions a {
  display: inline-block; padding: .4rem 1rem; border: 1px solid var(--link); border-radius: 6px;
}
.results p { margin: .2rem 0 1rem; color: var(--quiet); }
footer {
  display: flex; justify-content: space-between; gap: 1rem; margin-top: 3rem; padding-top: 1rem;
  border-top: 1px solid var(--line);
}
@media (min-width: 75rem) {
  .columns { grid-template-columns: 15rem minmax(0, 1fr) 15rem; }
  .outline {
    display: block; position: sticky; top: 3.5rem; align-self: start;
    max-height: calc(100vh - 4rem); overflow-y: auto;
  }
}
@media (max-width: 48rem) {
  .columns { display: flex; flex-direction: column; }
  .pages { order: 1; }
  .menu { display: inline; }
  header { flex-wrap: wrap; }
  header form { order: 1; flex-basis: 100%; }
}
@media (min-width: 48rem) {
  .pages {
    position: sticky; top: 3.5rem; align-self: start; max-height: calc(100vh - 4rem);
    overflow-y: auto;
  }
}
`;
