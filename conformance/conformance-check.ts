import type { Deployment } from './deployment.ts';
import { SkippedError } from './skipped-error.ts';

/**
 * One thing that a deployment does or does not do. It makes what it needs, and the site removes that
 * afterwards.
 */
export interface ConformanceCheck {
  /** The API that it checks. */
  group: 'REST v1' | 'REST v2' | 'jobs' | 'GraphQL';
  name: string;
  run(site: Deployment): Promise<void>;
}

export type Outcome = { result: 'passed' } | { result: 'failed' | 'skipped'; reason: string };

/** Runs one check and removes what it made, whatever came of it. */
export async function runCheck(check: ConformanceCheck, site: Deployment): Promise<Outcome> {
  try {
    await check.run(site);
    return { result: 'passed' };
  } catch (error) {
    const reason = oneLine(error instanceof Error ? error.message : String(error));
    return { result: error instanceof SkippedError ? 'skipped' : 'failed', reason };
  } finally {
    await site.cleanUp();
  }
}

const LONGEST_REASON = 300;

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim().slice(0, LONGEST_REASON);
}
