/** By custom: nobody. */
const UNPRIVILEGED_UID = 65_534;

/**
 * Does work as a user for whom modes of files count; root, who many containers run tests as, may do
 * everything.
 */
export async function asUnprivilegedUser(work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(UNPRIVILEGED_UID);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}
