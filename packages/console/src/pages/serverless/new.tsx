import { useState } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { useApi, useWrite } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { containerBody, containerProblems, EMPTY_CONTAINER } from '../../components/container-draft.ts';
import { ContainerFields } from '../../components/container-fields.tsx';
import type { ContainerDraft } from '../../components/container-draft.ts';
import { Command } from '../../components/copy.tsx';
import { SubmitForm } from '../../components/form-dialog.tsx';
import { Segmented, SelectField, TextField } from '../../components/form.tsx';
import { Card, Page } from '../../components/page.tsx';
import { EmptyState } from '../../components/states.tsx';

interface GpuType {
  id: string;
  name: string;
  pool: string | null;
  virtual: boolean;
  maxCount: { secure: number };
}

interface Draft extends ContainerDraft {
  name: string;
  type: 'QUEUE' | 'LOAD_BALANCER';
  /** `cpu`, or the id of a GPU pool. */
  hardware: string;
  min: string;
  max: string;
}

const EXAMPLES: readonly (readonly [image: string, about: string])[] = [
  ['local/echo', 'Echo: answers with its input'],
  ['local/streaming', 'Streaming: sends its answer in pieces'],
  ['local/progress', 'Progress: says how far it is'],
  ['local/openai', 'OpenAI: a chat that repeats what you say'],
  ['local/python-echo', 'Python echo'],
];

const FIRST: Draft = {
  ...EMPTY_CONTAINER,
  disk: '',
  name: 'my-endpoint',
  image: 'local/echo',
  type: 'QUEUE',
  hardware: 'cpu',
  min: '0',
  max: '3',
};

export default function NewEndpointPage() {
  const { write } = usePermissions();
  return (
    <Page
      title="New endpoint"
      crumbs={[{ to: '/serverless', label: 'Serverless' }]}
      description="An image that handles jobs, or serves HTTP."
    >
      {write ? (
        <>
          <Card title="From an image">
            <NewEndpoint />
          </Card>
          <Card title="From a folder of yours">
            <div className="stack">
              <p className="muted">
                A folder with a handler.ts, handler.js or handler.py becomes an endpoint with one command:
              </p>
              <Command>npx berth deploy ./my-folder</Command>
            </div>
          </Card>
        </>
      ) : (
        <EmptyState title="Your key may not create endpoints">
          Sign in with a key that may write, or ask whoever manages this account.
        </EmptyState>
      )}
    </Page>
  );
}

function NewEndpoint() {
  const navigate = useNavigate();
  const gpus = useApi<{ gpus?: GpuType[] }>('/v2/catalog/gpus');
  const create = useWrite<Endpoint>('=/v2/serverless');
  const [draft, setDraft] = useState(FIRST);
  const change = (part: Partial<Draft>): void => setDraft((current) => ({ ...current, ...part }));
  const types = gpus.data?.gpus ?? [];
  const pools = [...new Set(types.map(({ pool, id }) => pool ?? id))];
  /** Whether what is connected of a pool has no hardware behind it. */
  const isVirtual = (name: string): boolean => {
    const connected = types.filter(({ pool, id, maxCount }) => (pool ?? id) === name && maxCount.secure > 0);
    return connected.length > 0 && connected.every(({ virtual }) => virtual);
  };
  const submit = async (): Promise<void> => {
    const { id } = await create.mutateAsync({ path: '/v2/serverless', body: endpointBody(draft) });
    await navigate({ to: `/serverless/${id}/playground` });
  };
  return (
    <SubmitForm
      submit="Create the endpoint"
      onSubmit={submit}
      disabled={containerProblems(draft).length > 0 || draft.name === '' || draft.image === ''}
    >
      <Segmented
        label="Type"
        value={draft.type}
        options={[
          ['QUEUE', 'Queue: jobs'],
          ['LOAD_BALANCER', 'Load balancer: HTTP'],
        ]}
        onChange={(type) => change({ type })}
      />
      <div className="grid two">
        <TextField
          label="Name"
          required
          value={draft.name}
          onChange={(event) => change({ name: event.target.value })}
        />
        <SelectField
          label="Example"
          value={EXAMPLES.some(([image]) => image === draft.image) ? draft.image : ''}
          onChange={(event) => event.target.value !== '' && change({ image: event.target.value })}
          options={[...EXAMPLES, ['', 'An image of your own']]}
        />
        <SelectField
          label="Hardware"
          value={draft.hardware}
          onChange={(event) => change({ hardware: event.target.value })}
          options={[
            ['cpu', 'CPU, 2 vCPU and 4 GB'],
            ...pools.map(
              (pool) => [pool, `GPU: ${pool}${isVirtual(pool) ? ' (virtual: no hardware)' : ''}`] as const,
            ),
          ]}
        />
        <div className="grid pair">
          <TextField
            label="Workers at least"
            type="number"
            min={0}
            value={draft.min}
            hint="0: nothing runs without work"
            onChange={(event) => change({ min: event.target.value })}
          />
          <TextField
            label="Workers at most"
            type="number"
            min={0}
            value={draft.max}
            onChange={(event) => change({ max: event.target.value })}
          />
        </div>
      </div>
      <ContainerFields draft={draft} onChange={change} />
    </SubmitForm>
  );
}

function endpointBody(draft: Draft): Record<string, unknown> {
  const { name, type, hardware, min, max } = draft;
  return {
    name,
    type,
    ...containerBody(draft),
    ...(hardware === 'cpu'
      ? { cpu: [{ id: 'cpu3c', vcpuCount: 2 }] }
      : { gpu: { pools: [hardware], count: 1 } }),
    workers: { min: Number(min), max: Number(max) },
    scaling:
      type === 'QUEUE' ? { type: 'QUEUE_DELAY', queueDelay: 4 } : { type: 'REQUEST_COUNT', requestCount: 4 },
  };
}
