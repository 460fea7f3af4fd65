/** The key of an `Authorization: Bearer <key>` header. The scheme is not case-sensitive. */
export function bearerKey(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(\S+)\s*$/i.exec(header)?.[1];
}

let lastHeader: string | undefined;
let lastKey: string | undefined;

/**
 * Also accepts the key without a scheme, as clients of the job API and workers send it. The last header is
 * cached: clients repeat it.
 */
export function bearerOrBareKey(header: string | undefined): string | undefined {
  if (header !== lastHeader) {
    lastHeader = header;
    lastKey = bearerKey(header) ?? header?.trim();
  }
  return lastKey;
}
