/** One thing that was looked at, by whoever knows what there is to look at. */
export interface CheckResult {
  check: string;
  ok: boolean;
  found: string;
  /** What to do about it. */
  remedy?: string;
}
