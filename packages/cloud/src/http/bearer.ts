/** The key of an `Authorization: Bearer <key>` header; the scheme in any case. */
export function bearerKey(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(\S+)\s*$/i.exec(header)?.[1];
}
