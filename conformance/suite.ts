import { outcomeOf } from './check.ts';
import type { Check, Outcome } from './check.ts';
import { graphql } from './graphql.ts';
import { jobs } from './jobs.ts';
import { restV1 } from './rest-v1.ts';
import { restV2 } from './rest-v2.ts';
import { Site } from './site.ts';
import type { SiteOptions } from './site.ts';

export const CHECKS: readonly Check[] = [...restV1, ...restV2, ...jobs, ...graphql];

export function selected(only: string | undefined): Check[] {
  const word = only?.toLowerCase();
  return CHECKS.filter(
    ({ group, name }) => word === undefined || `${group} ${name}`.toLowerCase().includes(word),
  );
}

/** One after the other: a deployment under no other load says the same every time. */
export async function outcomesAt(
  options: SiteOptions,
  checks: readonly Check[],
  told: (check: Check, outcome: Outcome) => void = () => undefined,
): Promise<Outcome[]> {
  const site = new Site(options);
  const outcomes: Outcome[] = [];
  for (const check of checks) {
    const outcome = await outcomeOf(check, site);
    outcomes.push(outcome);
    told(check, outcome);
  }
  return outcomes;
}
