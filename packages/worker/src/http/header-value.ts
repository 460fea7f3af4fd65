/**
 * Whether a text is valid in a header. A request with any other text in a header throws before it is sent.
 */
export function isHeaderValue(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text);
}
