/** XML as far as S3 speaks it: elements and text. What attributes say is passed over. */
export interface XmlElement {
  name: string;
  text: string;
  children: XmlElement[];
}

/** An element to be written. A list of elements is written one after the other; undefined is left out. */
export type XmlContent =
  | string
  | number
  | boolean
  | XmlFragment
  | readonly (XmlFragment | undefined)[]
  | undefined;
export interface XmlFragment {
  readonly xml: string;
}

const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
export const S3_NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

export function element(name: string, content: XmlContent, attributes = ''): XmlFragment {
  return { xml: `<${name}${attributes}>${serializeContent(content)}</${name}>` };
}

export function xmlDocument(name: string, content: XmlContent): string {
  return `${DECLARATION}${element(name, content, ` xmlns="${S3_NAMESPACE}"`).xml}`;
}

export function xmlDocumentWithoutNamespace(name: string, content: XmlContent): string {
  return `${DECLARATION}${element(name, content).xml}`;
}

function serializeContent(content: XmlContent): string {
  if (content === undefined) return '';
  if (typeof content === 'object')
    return 'xml' in content ? content.xml : content.map((one) => one?.xml ?? '').join('');
  return escape(String(content));
}

/** Characters that XML cannot hold are left out; a client that minds them asks for another encoding. */
function escape(text: string): string {
  return text
    .replaceAll(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '')
    .replaceAll(/[&<>"\r\n\t]/g, (character) => ESCAPES[character] ?? character);
}

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\r': '&#13;',
  '\n': '&#10;',
  '\t': '&#9;',
};
const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);
/** Deeper is nothing that S3 knows. */
const MAX_DEPTH = 32;
const TOKEN =
  /<!\[CDATA\[([\s\S]*?)\]\]>|<!--[\s\S]*?-->|<\?[\s\S]*?\?>|<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*(\/?)>|([^<]+)/gy;

/** Reads a document; undefined where it is none, or has more than elements and text. */
export function parseXml(document: string): XmlElement | undefined {
  const top: XmlElement = { name: '', text: '', children: [] };
  const open = [top];
  TOKEN.lastIndex = 0;
  const source = document.replace(/^\ufeff/, '');
  for (let at = 0; at < source.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(source);
    const current = open.at(-1);
    if (token === null || current === undefined) return undefined;
    const [, cdata, closing, name, , selfClosing, text] = token;
    if (cdata !== undefined) current.text += cdata;
    else if (text !== undefined) {
      const read = unescape(text);
      if (read === undefined) return undefined;
      current.text += read;
    } else if (name !== undefined) {
      const local = name.slice(name.indexOf(':') + 1);
      if (closing === '/') {
        if (current.name !== local || open.length === 1) return undefined;
        open.pop();
      } else {
        const childElement: XmlElement = { name: local, text: '', children: [] };
        current.children.push(childElement);
        if (selfClosing !== '/') open.push(childElement);
        if (open.length > MAX_DEPTH) return undefined;
      }
    }
  }
  const [root] = top.children;
  return open.length === 1 && top.children.length === 1 && top.text.trim() === '' ? root : undefined;
}

function unescape(text: string): string | undefined {
  if (!text.includes('&')) return text;
  let known = true;
  const read = text.replaceAll(
    /&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w+));|&/g,
    (_whole, decimal?: string, hex?: string, name?: string) => {
      const point =
        decimal !== undefined ? Number(decimal) : hex !== undefined ? Number.parseInt(hex, 16) : undefined;
      const character =
        point !== undefined
          ? point <= 0x10ffff
            ? String.fromCodePoint(point)
            : undefined
          : ENTITIES.get(name ?? '');
      known &&= character !== undefined;
      return character ?? '';
    },
  );
  return known ? read : undefined;
}

export function child(parent: XmlElement | undefined, name: string): XmlElement | undefined {
  return parent?.children.find((one) => one.name === name);
}

export function childText(parent: XmlElement | undefined, name: string): string | undefined {
  return child(parent, name)?.text;
}
