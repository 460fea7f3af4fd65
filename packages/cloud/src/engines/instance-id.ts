const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Valid in the name of a container and of a folder. */
export function isInstanceId(id: string): boolean {
  return ID.test(id);
}
