/** The content of an element to write: text, elements one after the other, or nothing. */
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

export function element(name: string, content: XmlContent, attributes = ''): XmlFragment {
  return { xml: `<${name}${attributes}>${serializeContent(content)}</${name}>` };
}

export function xmlDocument(name: string, content: XmlContent, namespace?: string): string {
  return `${DECLARATION}${element(name, content, namespace === undefined ? '' : ` xmlns="${namespace}"`).xml}`;
}

function serializeContent(content: XmlContent): string {
  if (content === undefined) return '';
  if (typeof content === 'object')
    return 'xml' in content ? content.xml : content.map((one) => one?.xml ?? '').join('');
  return escapeText(String(content));
}

/** Characters that XML cannot hold are left out. A client that needs them asks for URL encoding. */
function escapeText(text: string): string {
  return text
    .toWellFormed()
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
