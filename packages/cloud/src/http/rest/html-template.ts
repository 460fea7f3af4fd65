/** Finished HTML. Everything else that is put into a page is text, and is escaped on its way in. */
export class Html {
  readonly #markup: string;

  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

export type HtmlValue = Html | string | number | false | undefined | readonly HtmlValue[];

/**
 * Markup as a template: html`<p>${text}</p>` escapes the text and takes other Html, lists of it, or nothing,
 * as they are.
 */
export function html(markup: TemplateStringsArray, ...inserts: HtmlValue[]): Html {
  return new Html(String.raw({ raw: markup }, ...inserts.map(renderValue)));
}

function renderValue(insert: HtmlValue): string {
  if (insert instanceof Html) return insert.toString();
  if (insert === undefined || insert === false) return '';
  if (typeof insert === 'object') return insert.map(renderValue).join('');
  return escaped(String(insert));
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
