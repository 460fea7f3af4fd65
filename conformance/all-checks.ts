import { runCheck } from './conformance-check.ts';
import type { ConformanceCheck, Outcome } from './conformance-check.ts';
import { graphqlChecks } from './graphql.checks.ts';
import { jobChecks } from './jobs.checks.ts';
import { restV1Checks } from './rest-v1.checks.ts';
import { restV2Checks } from './rest-v2.checks.ts';
import { Deployment } from './deployment.ts';
import type { DeploymentOptions } from './deployment.ts';

export const CHECKS: readonly ConformanceCheck[] = [
  ...restV1Checks,
  ...restV2Checks,
  ...jobChecks,
  ...graphqlChecks,
];

export function selectChecks(only: string | undefined): ConformanceCheck[] {
  const word = only?.toLowerCase();
  return CHECKS.filter(
    ({ group, name }) => word === undefined || `${group} ${name}`.toLowerCase().includes(word),
  );
}

/** One after the other: a deployment under no other load says the same every time. */
export async function runChecks(
  options: DeploymentOptions,
  checks: readonly ConformanceCheck[],
  told: (check: ConformanceCheck, outcome: Outcome) => void = () => undefined,
): Promise<Outcome[]> {
  const site = new Deployment(options);
  const outcomes: Outcome[] = [];
  for (const check of checks) {
    const outcome = await runCheck(check, site);
    outcomes.push(outcome);
    told(check, outcome);
  }
  return outcomes;
}
