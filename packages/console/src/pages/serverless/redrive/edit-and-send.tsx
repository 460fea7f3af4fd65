import { useEffect, useMemo, useRef, useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../../../api/client.ts';
import { refresh } from '../../../api/queries.ts';
import type { JobDetail } from '../../../api/types.ts';
import { Dialog } from '../../../components/dialog.tsx';
import { SubmitForm } from '../../../components/form-dialog.tsx';
import { Segmented } from '../../../components/form.tsx';
import { plural } from '../../../components/format.ts';
import { JsonEditor } from '../../../components/json-editor.tsx';
import { jsonProblem } from '../../../components/json-text.ts';
import { JsonView } from '../../../components/json-view.tsx';
import { Loaded, Note } from '../../../components/states.tsx';
import { useToasts } from '../../../components/toast.tsx';
import { applyPatch, commonMembers, isJsonObject, patchBetween } from './merge-patch.ts';
import { readMatching, sendEdited } from './send-edited.ts';
import type { InputEdit, RedriveTarget, SendProgress } from './send-edited.ts';

/** So many inputs are read for what they have in common. */
const SAMPLES = 10;
/** So many jobs are counted. */
const PAGE = 100;
/** So many are shown as they are sent. */
const PREVIEWED = 3;

interface Samples {
  jobs: JobDetail[];
  /** Undefined if there are more than were counted. */
  total: number | undefined;
}

interface Props {
  endpointId: string;
  target: RedriveTarget;
  onClose: () => void;
}

/** Many jobs are sent again as new jobs, with an edit of all their inputs. */
export function EditAndSend(props: Props) {
  const { endpointId, target, onClose } = props;
  const samples = useQuery<Samples, Error>({
    queryKey: ['samples', endpointId, JSON.stringify(target)],
    queryFn: () => readSamples(endpointId, target),
    staleTime: Infinity,
    gcTime: 0,
  });
  return (
    <Dialog
      open
      onClose={onClose}
      shape="wide"
      title="Edit and send again"
      description="New jobs get the edited inputs. The old ones stay as they are."
    >
      <Loaded of={samples}>{(read) => <EditForm {...props} samples={read} />}</Loaded>
    </Dialog>
  );
}

function EditForm({ endpointId, target, onClose, samples }: Props & { samples: Samples }) {
  const { jobs, total } = samples;
  const inputs = useMemo(() => jobs.map(({ input }) => input), [jobs]);
  const common = useMemo(() => commonMembers(inputs.filter(isJsonObject)), [inputs]);
  const [way, setWay] = useState<'patch' | 'input'>('patch');
  const [texts, setTexts] = useState({
    patch: JSON.stringify(common, null, 2),
    input: JSON.stringify(inputs[0] ?? {}, null, 2),
  });
  const [progress, setProgress] = useState<SendProgress>();
  const closed = useRef(new AbortController());
  useEffect(() => {
    closed.current = new AbortController();
    return () => closed.current.abort();
  }, []);
  const client = useQueryClient();
  const toasts = useToasts();
  const { edit, problem } = readEdit(way, texts[way], common);
  if (jobs.length === 0) return <Note>No job that has ended matches.</Note>;
  const send = async (): Promise<void> => {
    if (edit === undefined) return;
    const { done, skipped } = await sendEdited(endpointId, target, edit, closed.current.signal, setProgress);
    await refresh(client, [`/v2/serverless/${endpointId}`, `/v2/${endpointId}`]);
    toasts.done(`${plural(done, 'job')} sent again with the edit`);
    if (skipped.length === 0) onClose();
  };
  return (
    <SubmitForm
      submit={total === undefined ? 'Send all that match' : `Send ${plural(total, 'job')}`}
      onSubmit={send}
      onCancel={onClose}
      disabled={edit === undefined}
    >
      <Segmented
        label="How the inputs are edited"
        value={way}
        options={[
          ['patch', 'What they have in common'],
          ['input', 'The whole input'],
        ]}
        onChange={setWay}
      />
      <p className="muted">
        {way === 'patch'
          ? `Members of ${total === jobs.length ? 'all' : `the first ${jobs.length}`} inputs that are the ` +
            'same. What you change or add is set in each job, what you delete or set to null is removed, ' +
            'and all else stays as each job has it.'
          : 'Every new job gets this input, and nothing of its old one.'}
      </p>
      <JsonEditor
        label={way === 'patch' ? 'Common input' : 'New input'}
        value={texts[way]}
        onChange={(text) => setTexts((before) => ({ ...before, [way]: text }))}
      />
      {problem !== undefined && <Note>{problem}</Note>}
      {edit !== undefined && <Preview jobs={jobs.slice(0, PREVIEWED)} edit={edit} total={total} />}
      {progress !== undefined && <Progress progress={progress} />}
    </SubmitForm>
  );
}

function readEdit(
  way: 'patch' | 'input',
  text: string,
  common: Record<string, unknown>,
): { edit?: InputEdit; problem?: string } {
  if (jsonProblem(text) !== undefined) return {};
  const value = JSON.parse(text) as unknown;
  if (way === 'input') return value === null ? { problem: 'null is no input.' } : { edit: { input: value } };
  if (!isJsonObject(value)) return { problem: 'Give an object: its members are set in each input.' };
  const patch = patchBetween(common, value);
  if (Object.keys(patch).length === 0) return { problem: 'Nothing is edited yet.' };
  return { edit: { patch } };
}

/** What is sent, for the first few jobs. */
function Preview({ jobs, edit, total }: { jobs: JobDetail[]; edit: InputEdit; total: number | undefined }) {
  return (
    <section className="stack" aria-label="Preview">
      {'patch' in edit && <JsonView label="Patch that is sent" value={edit.patch} />}
      {'patch' in edit ? (
        jobs.map(({ id, input }) =>
          isJsonObject(input) ? (
            <JsonView key={id} label={`Input from ${id}`} value={applyPatch(input, edit.patch)} />
          ) : (
            <Note key={id} tone="warn">
              <span>
                <code>{id}</code> is skipped: its input is not an object.
              </span>
            </Note>
          ),
        )
      ) : (
        <JsonView label="Input of each new job" value={edit.input} />
      )}
      {'patch' in edit && total !== jobs.length && (
        <p className="muted">
          and so on for {total === undefined ? 'the others' : `${total - jobs.length} more`}
        </p>
      )}
    </section>
  );
}

function Progress({ progress: { done, skipped } }: { progress: SendProgress }) {
  return (
    <div role="status" className="stack">
      <span>{plural(done, 'job')} sent again so far</span>
      {skipped.length > 0 && (
        <Note tone="warn">
          <strong>{plural(skipped.length, 'job')} skipped</strong>
          <ul>
            {skipped.slice(0, SAMPLES).map(({ id, reason }) => (
              <li key={id}>
                <code>{id}</code>: {reason}
              </li>
            ))}
          </ul>
        </Note>
      )}
    </div>
  );
}

async function readSamples(endpointId: string, target: RedriveTarget): Promise<Samples> {
  const read = (id: string): Promise<JobDetail> =>
    api<JobDetail>(`/v2/serverless/${endpointId}/jobs/${encodeURIComponent(id)}`);
  if ('ids' in target)
    return { jobs: await Promise.all(target.ids.slice(0, SAMPLES).map(read)), total: target.ids.length };
  let page = await readMatching(endpointId, target.filter, PAGE);
  const isWhole = !page.pagination.hasNextPage;
  // A search scans a limited number of jobs, and may find none among them.
  while (page.jobs.length === 0 && page.pagination.nextCursor !== null)
    page = await readMatching(endpointId, target.filter, PAGE, page.pagination.nextCursor);
  return {
    jobs: await Promise.all(page.jobs.slice(0, SAMPLES).map(({ id }) => read(id))),
    total: isWhole ? page.jobs.length : undefined,
  };
}
