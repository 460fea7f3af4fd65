/** The file or folder is another user's, or its own user may not do this to it. */
export function isPermissionError(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM';
}
