import {
  parseXml as parseDocument,
  XmlCdata,
  XmlDocumentType,
  XmlElement as ParsedElement,
  XmlText,
} from '@rgrove/parse-xml';

/** An element with its text and the elements in it. Attributes and namespaces are not read. */
export interface XmlElement {
  /** Without a namespace prefix. */
  name: string;
  text: string;
  children: XmlElement[];
}

/** More than any document of S3 needs. */
const MAX_DEPTH = 32;
/**
 * Parsing takes about 2 µs per tag and blocks the server meanwhile. 10,000 parts of an upload have 60,000
 * tags.
 */
const MAX_TAGS = 250_000;

/**
 * The root element of a document; undefined if it is not well-formed, is too large or deep, or has a
 * document type. Entities other than those of XML itself are errors: nothing is expanded.
 */
export function parseXml(document: string): XmlElement | undefined {
  if (countTags(document) > MAX_TAGS) return undefined;
  try {
    const { children, root } = parseDocument(document, {
      preserveDocumentType: true,
      preserveCdata: true,
    });
    if (root === null || children.some((node) => node instanceof XmlDocumentType)) return undefined;
    return readElement(root, 1);
  } catch {
    // Not well-formed, or nested so deeply that the parser ran out of stack.
    return undefined;
  }
}

function countTags(document: string): number {
  let tags = 0;
  for (let at = document.indexOf('<'); at !== -1 && tags <= MAX_TAGS; at = document.indexOf('<', at + 1))
    tags += 1;
  return tags;
}

function readElement({ name, children }: ParsedElement, depth: number): XmlElement | undefined {
  if (depth >= MAX_DEPTH) return undefined;
  const element: XmlElement = { name: name.slice(name.indexOf(':') + 1), text: '', children: [] };
  for (const node of children) {
    if (node instanceof XmlText || node instanceof XmlCdata) element.text += node.text;
    if (!(node instanceof ParsedElement)) continue;
    const read = readElement(node, depth + 1);
    if (read === undefined) return undefined;
    element.children.push(read);
  }
  return element;
}

export function child(parent: XmlElement | undefined, name: string): XmlElement | undefined {
  return parent?.children.find((one) => one.name === name);
}

export function childText(parent: XmlElement | undefined, name: string): string | undefined {
  return child(parent, name)?.text;
}
