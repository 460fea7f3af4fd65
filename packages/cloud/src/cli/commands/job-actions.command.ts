import { ACTION_STATUSES } from '../../domain/job-search-query.ts';
import type { JobAction } from '../../domain/job-search-query.ts';
import type { ApiClient } from '../api-client.ts';
import { UsageError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import type { Command, Options } from '../command-definition.ts';
import { connect } from '../connect.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import type { Output } from '../output.ts';
import { endpointArgumentHelp, endpointPath, findEndpoint } from '../serverless/endpoint-client.ts';
import { readJobInput } from '../serverless/job-input.ts';
import { filterFields, filterOptions } from '../serverless/job-search.ts';
import { writeLine } from '../terminal-text.ts';
import { inputBatches, readEditedInputs, readPatch } from '../serverless/redrive-edits.ts';

interface BulkResult {
  done: number;
  jobs: { id: string; newId?: string }[];
  skipped: { id: string; reason: string }[];
  nextCursor: string | null;
}

const ACTION_HELP: Record<JobAction, { summary: string; details: string; done: string }> = {
  retry: { summary: 'Put failed jobs back into the queue.', details: '', done: 'retried' },
  cancel: { summary: 'Cancel jobs.', details: '', done: 'cancelled' },
  redrive: {
    summary: 'Send jobs that have ended again, as new jobs.',
    details:
      ' The new jobs get the inputs of the old ones, unless --input, --patch or --inputs says otherwise. ' +
      '"berth job export" writes a file for --inputs.',
    done: 'sent again',
  },
};
const inputOptions = {
  input: {
    kind: 'text',
    value: 'JSON',
    description: 'With one job: another input. @FILE and - work as with run.',
  },
  patch: {
    kind: 'text',
    value: 'JSON',
    description: 'Change the input of each job: a JSON merge patch, in which null removes. @FILE or -.',
  },
  inputs: {
    kind: 'text',
    value: 'FILE',
    description:
      'In place of jobs or a filter: a file of lines {"id": …, "input": …}, or - for the standard input.',
  },
} as const satisfies Options;
interface InputValues {
  input?: string | undefined;
  patch?: string | undefined;
  inputs?: string | undefined;
}

function actionCommand(action: JobAction): Command {
  const { summary, details } = ACTION_HELP[action];
  const defaultStatuses = ACTION_STATUSES[action].join(' or ');
  return command({
    name: `job ${action}`,
    summary,
    details: `Name jobs by their ids, or by a filter; --all means all that are ${defaultStatuses}.${details}`,
    words: { ENDPOINT: endpointArgumentHelp, 'JOB*': 'Ids of jobs, with spaces or commas between them.' },
    options: {
      ...filterOptions,
      all: { kind: 'switch', description: `All jobs that are ${defaultStatuses}.` },
      ...(action === 'redrive' ? inputOptions : {}),
      ...serverOptions,
    },
    async run(call) {
      const filter = filterFields(call.options);
      const ids = call.words.JOB.flatMap((word) => word.split(/[\s,]+/)).filter((id) => id !== '');
      const { input, patch, inputs }: InputValues = call.options;
      const named = [ids.length > 0, Object.keys(filter).length > 0, call.options.all, inputs !== undefined];
      if (named.filter(Boolean).length !== 1)
        throw new UsageError(
          `name jobs by their ids, by a filter such as --status, ${action === 'redrive' ? 'by --inputs, ' : ''}` +
            'or by --all',
        );
      if ([input, patch, inputs].filter((each) => each !== undefined).length > 1)
        throw new UsageError('give only one of --input, --patch and --inputs');
      const target = ids.length === 0 ? { filter } : { ids };
      const bodies: object[] =
        inputs !== undefined
          ? inputBatches(await readEditedInputs(inputs, call.stdin)).map((batch) => ({ inputs: batch }))
          : patch !== undefined
            ? [{ ...target, inputPatch: await readPatch(patch, call.stdin) }]
            : input !== undefined
              ? [{ ...target, ...(JSON.parse((await readJobInput(input, call.stdin)).text) as object) }]
              : [target];
      const client = await connect(call);
      const endpoint = await findEndpoint(client, call.words.ENDPOINT);
      const result = await actOnAll(client, endpointPath(endpoint, `/jobs/${action}`), bodies);
      for (const { id, reason } of result.skipped)
        writeLine(call.stderr, `berth: ${id} is skipped: ${escapeControlCharacters(reason)}`);
      printResult(call.output, action, result);
    },
  });
}

function printResult(output: Output, action: JobAction, { done, jobs, skipped }: BulkResult): void {
  output.printRecord(
    output.isText ? { [ACTION_HELP[action].done]: done, skipped: skipped.length } : { done, jobs, skipped },
    ...jobs.flatMap(({ newId }) => (newId === undefined ? [] : [newId])),
  );
}

/** One call changes a bounded number of jobs. */
async function actOnAll(client: ApiClient, path: string, bodies: readonly object[]): Promise<BulkResult> {
  const all: BulkResult = { done: 0, jobs: [], skipped: [], nextCursor: null };
  for (const body of bodies)
    do {
      const next: BulkResult = await client.post<BulkResult>(path, {
        ...body,
        ...(all.nextCursor !== null && { cursor: all.nextCursor }),
      });
      all.done += next.done;
      all.jobs.push(...next.jobs);
      all.skipped.push(...next.skipped);
      all.nextCursor = next.nextCursor;
    } while (all.nextCursor !== null);
  return all;
}

export const jobRetry = actionCommand('retry');
export const jobCancel = actionCommand('cancel');
export const jobRedrive = actionCommand('redrive');
