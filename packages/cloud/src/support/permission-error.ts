/** The file or folder belongs to another user, or its mode forbids the operation. */
export function isPermissionError(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM';
}
