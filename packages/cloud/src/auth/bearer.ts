/** The key of an `Authorization: Bearer <key>` header; the scheme in any case. */
export function bearerKey(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(\S+)\s*$/i.exec(header)?.[1];
}

let lastHeader: string | undefined;
let lastKey: string | undefined;

/** The same, or the key alone: the job interface and workers send it bare. Requests often bring the header of the one before. */
export function bearerOrBareKey(header: string | undefined): string | undefined {
  if (header !== lastHeader) {
    lastHeader = header;
    lastKey = bearerKey(header) ?? header?.trim();
  }
  return lastKey;
}
