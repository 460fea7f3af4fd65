import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Marked } from 'marked';
import type { Token, Tokens } from 'marked';
import { parse } from 'yaml';
import { docsNavigation, headingId } from './docs-navigation.ts';
import type { DocsGroup } from './docs-navigation.ts';
import { docsHtml, escapeHtml } from './docs-html.ts';
import type { OutlineEntry } from './docs-html.ts';

const MAX_RESULTS = 30;
const SNIPPET_CHARACTERS = 160;

/** A part of a page, from one heading to the next. */
interface Section {
  path: string;
  page: string;
  heading: string;
  /** Empty for the part before the first heading. */
  id: string;
  text: string;
}

/** What is made of a file. */
interface ReadPage {
  html: string;
  outline: OutlineEntry[];
  sections: Section[];
}

/** The start page, as its front matter describes it. */
interface Home {
  hero: { name: string; text: string; tagline: string; actions: { text: string; link: string }[] };
  features: { title: string; details: string; link: string }[];
}

/**
 * The documentation of a clone, rendered from its Markdown when it is asked for: nothing is built, and what
 * is shown is what is there. Packages have the site as VitePress builds it.
 */
export class MarkdownSite {
  readonly #folder: string;
  /** What was made of each file, until it changes: a search would otherwise read them all again. */
  readonly #files = new Map<string, ReadPage & { modifiedAt: number }>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** A page by its address below /docs/; the empty one is the start page. Undefined if there is none. */
  page(path: string): string | undefined {
    const groups = docsNavigation(this.#folder);
    if (path === '' || path === 'index') return this.#home(groups);
    const pages = groups.flatMap(({ pages: found }) => found);
    const at = pages.findIndex((page) => page.path === path);
    const page = pages[at];
    if (page === undefined) return undefined;
    const { html, outline } = this.#read(path, page.title);
    return docsHtml({
      title: page.title,
      groups,
      path,
      content: html,
      outline,
      before: pages[at - 1],
      after: pages[at + 1],
    });
  }

  /** The page with what was found. */
  search(query: string): string {
    const groups = docsNavigation(this.#folder);
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length === 0 ? [] : this.#find(groups, words);
    const results = found.map(
      ({ path, page, heading, id, text }) =>
        `<li><a href="/docs/${path}${id === '' ? '' : `#${id}`}">${escapeHtml(page)}${
          heading === page ? '' : ` › ${escapeHtml(heading)}`
        }</a><p>${snippet(text, words)}</p></li>`,
    );
    const content =
      `<h1>Search</h1><p>${
        words.length === 0
          ? 'Type words that a page must have.'
          : results.length === 0
            ? `No page has ${escapeHtml(query)}.`
            : `${results.length} results for ${escapeHtml(query)}.`
      }</p>` + (results.length === 0 ? '' : `<ol class="results">${results.join('')}</ol>`);
    return docsHtml({ title: 'Search', groups, path: 'search', content, outline: [], query });
  }

  notFound(): string {
    const content = '<h1>No such page</h1><p>Choose one on the left, or search.</p>';
    return docsHtml({
      title: 'No such page',
      groups: docsNavigation(this.#folder),
      path: '',
      content,
      outline: [],
    });
  }

  #home(groups: DocsGroup[]): string {
    const { hero, features } = parse(frontMatter(readFileSync(this.#file('index'), 'utf8'))) as Home;
    const link = (path: string, text: string): string => `<a href="/docs${path}">${escapeHtml(text)}</a>`;
    const items = features.map(
      ({ title, details, link: path }) => `<li>${link(path, title)}: ${escapeHtml(details)}</li>`,
    );
    const content = `<h1>${escapeHtml(hero.name)}: ${escapeHtml(hero.text)}</h1>
      <p>${escapeHtml(hero.tagline)}</p>
      <p class="actions">${hero.actions.map(({ text, link: path }) => link(path, text)).join(' ')}</p>
      <ul>${items.join('')}</ul>`;
    return docsHtml({ title: hero.name, groups, path: '', content, outline: [] });
  }

  #find(groups: DocsGroup[], words: readonly string[]): Section[] {
    const sections = groups
      .flatMap(({ pages }) => pages)
      .flatMap(({ path, title }) => this.#read(path, title).sections);
    return sections
      .map((section) => ({ section, score: scoreOf(section, words) }))
      .filter(({ score }) => score > 0)
      .sort((one, other) => other.score - one.score)
      .slice(0, MAX_RESULTS)
      .map(({ section }) => section);
  }

  #read(path: string, title: string): ReadPage {
    const modifiedAt = statSync(this.#file(path)).mtimeMs;
    let page = this.#files.get(path);
    if (page?.modifiedAt !== modifiedAt) {
      const source = readFileSync(this.#file(path), 'utf8');
      page = { modifiedAt, ...render(source), sections: sectionsOf(path, title, source) };
      this.#files.set(path, page);
    }
    return page;
  }

  #file(path: string): string {
    return join(this.#folder, `${path}.md`);
  }
}

function frontMatter(source: string): string {
  return /^---\n([\s\S]*?)\n---\n/.exec(source)?.[1] ?? '';
}

function render(source: string): { html: string; outline: OutlineEntry[] } {
  const outline: OutlineEntry[] = [];
  const idOf = uniqueIds();
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const text = plainText(tokens);
        const id = idOf(text);
        if (depth === 2 || depth === 3) outline.push({ id, text, depth });
        return `<h${depth} id="${id}"><a href="#${id}">${this.parser.parseInline(tokens)}</a></h${depth}>\n`;
      },
      // Words such as <domain> are text.
      html: ({ text }) => escapeHtml(text),
      link({ href, tokens }) {
        const target = /^[a-z]+:/.test(href)
          ? href
          : href.replace(/(?:^|\/)index\.md/, './').replace(/\.md(?=#|$)/, '');
        return `<a href="${escapeHtml(target)}">${this.parser.parseInline(tokens)}</a>`;
      },
      code: ({ text, lang }) => {
        const label = /\[(.+)\]/.exec(lang ?? '')?.[1];
        const caption = label === undefined ? '' : `<figcaption>${escapeHtml(label)}</figcaption>`;
        return `<figure>${caption}<pre tabindex="0"><code>${escapeHtml(text)}</code></pre></figure>\n`;
      },
      table(token) {
        const cells = (row: readonly Tokens.TableCell[], tag: string): string =>
          `<tr>${row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`;
        return `<div class="table" tabindex="0"><table><thead>${cells(token.header, 'th')}</thead><tbody>${token.rows
          .map((row) => cells(row, 'td'))
          .join('')}</tbody></table></div>\n`;
      },
    },
  });
  return { html: marked.parse(withoutContainers(source), { async: false }), outline };
}

/** Groups of code blocks are shown one below the other. */
function withoutContainers(source: string): string {
  return source.replace(/^---\n[\s\S]*?\n---\n/, '').replace(/^:::.*$/gm, '');
}

function uniqueIds(): (text: string) => string {
  const used = new Map<string, number>();
  return (text) => {
    const id = headingId(text);
    const count = used.get(id) ?? 0;
    used.set(id, count + 1);
    return count === 0 ? id : `${id}-${count}`;
  };
}

function sectionsOf(path: string, page: string, source: string): Section[] {
  const idOf = uniqueIds();
  const sections: Section[] = [{ path, page, heading: page, id: '', text: '' }];
  for (const token of new Marked().lexer(withoutContainers(source))) {
    if (token.type === 'heading') {
      const heading = plainText((token as Tokens.Heading).tokens);
      sections.push({ path, page, heading, id: idOf(heading), text: '' });
    } else (sections.at(-1) as Section).text += `${readable(token)} `;
  }
  return sections;
}

function readable({ raw }: Token): string {
  return raw.replace(/```.*|[|`*]|\]\([^)]*\)|\[/g, ' ').replace(/\s+/g, ' ');
}

function plainText(tokens: readonly Token[]): string {
  return tokens
    .map((token) =>
      'tokens' in token && token.tokens !== undefined
        ? plainText(token.tokens)
        : 'text' in token
          ? String(token.text)
          : token.raw,
    )
    .join('');
}

/** 0 unless every word is in the section; more where they are in its headings. */
function scoreOf({ page, heading, text }: Section, words: readonly string[]): number {
  const [inPage, inHeading, inText] = [page, heading, text].map((part) => part.toLowerCase()) as [
    string,
    string,
    string,
  ];
  let score = 0;
  for (const word of words) {
    const points =
      (inPage.includes(word) ? 4 : 0) + (inHeading.includes(word) ? 8 : 0) + (inText.includes(word) ? 1 : 0);
    if (points === 0) return 0;
    score += points;
  }
  return score;
}

function snippet(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
  const first = Math.max(0, Math.min(...(places.length === 0 ? [0] : places)) - 40);
  const start = first === 0 ? 0 : text.indexOf(' ', first) + 1;
  const shown = text.slice(start, start + SNIPPET_CHARACTERS).trim();
  const pattern = new RegExp(
    words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'),
    'gi',
  );
  let html = '';
  let at = 0;
  for (const match of shown.matchAll(pattern)) {
    html += `${escapeHtml(shown.slice(at, match.index))}<mark>${escapeHtml(match[0])}</mark>`;
    at = match.index + match[0].length;
  }
  const [before, after] = [start > 0 ? '… ' : '', text.length > start + shown.length ? ' …' : ''];
  return `${before}${html}${escapeHtml(shown.slice(at))}${after}`;
}
