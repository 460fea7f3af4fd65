/** By custom: nobody. */
const ORDINARY_USER = 65_534;

/** Does work as a user for whom modes of files count; root, who many containers run tests as, may do everything. */
export async function asOrdinaryUser(work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(ORDINARY_USER);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}
