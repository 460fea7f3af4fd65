/** The result of one check. */
export interface CheckResult {
  check: string;
  ok: boolean;
  found: string;
  /** How to fix it. */
  remedy?: string;
}
