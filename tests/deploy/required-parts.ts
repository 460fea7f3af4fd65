/**
 * The reason why a part of these tests is left out. It is a failure where `BERTH_REQUIRE_DEPLOY` names the
 * part: programs such as nginx and caddy, separated by spaces.
 */
export function leftOut(part: string, reason: string): string {
  const required = (process.env['BERTH_REQUIRE_DEPLOY'] ?? '').split(' ');
  if (required.includes(part)) throw new Error(`${reason}; BERTH_REQUIRE_DEPLOY names ${part}`);
  return reason;
}
