/** The key of an `Authorization: Bearer <key>` header; the scheme in any case. */
export function bearerKey(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(\S+)\s*$/i.exec(header)?.[1];
}

/** The same, or the key alone: the job interface and workers send it bare. */
export function bearerOrBareKey(header: string | undefined): string | undefined {
  return bearerKey(header) ?? header?.trim();
}
