import { useState } from 'react';
import type { FormEvent } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { useApi, useWrite } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { Button } from '../../components/button.tsx';
import { Command } from '../../components/copy.tsx';
import { Segmented, SelectField, TextArea, TextField } from '../../components/form.tsx';
import { Card, Page } from '../../components/page.tsx';
import { ErrorNote, Note } from '../../components/states.tsx';
import { parseEnv } from '../../components/env-text.ts';

interface GpuType {
  id: string;
  name: string;
  pool: string | null;
  virtual: boolean;
}

const EXAMPLES: readonly (readonly [image: string, about: string])[] = [
  ['local/echo', 'Echo: answers with its input'],
  ['local/streaming', 'Streaming: sends its answer in pieces'],
  ['local/progress', 'Progress: says how far it is'],
  ['local/openai', 'OpenAI: a chat that repeats what you say'],
  ['local/python-echo', 'Python echo'],
];

export default function NewEndpointPage() {
  const { write } = usePermissions();
  const navigate = useNavigate();
  const gpus = useApi<{ gpus?: GpuType[]; gpuTypes?: GpuType[] }>('/v2/catalog/gpus');
  const create = useWrite<Endpoint>('=/v2/serverless');
  const [fields, setFields] = useState({
    name: 'my-endpoint',
    image: 'local/echo',
    type: 'QUEUE' as 'QUEUE' | 'LOAD_BALANCER',
    hardware: 'cpu',
    min: '0',
    max: '3',
    env: '',
  });
  const env = parseEnv(fields.env);
  const set = (next: Partial<typeof fields>): void => setFields({ ...fields, ...next });
  const pools = [
    ...new Set((gpus.data?.gpus ?? gpus.data?.gpuTypes ?? []).map(({ pool, id }) => pool ?? id)),
  ];
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const body = {
      name: fields.name,
      type: fields.type,
      image: fields.image,
      ...(fields.hardware === 'cpu'
        ? { cpu: [{ id: 'cpu3c', vcpuCount: 2 }] }
        : { gpu: { pools: [fields.hardware], count: 1 } }),
      workers: { min: Number(fields.min), max: Number(fields.max) },
      scaling:
        fields.type === 'QUEUE'
          ? { type: 'QUEUE_DELAY', queueDelay: 4 }
          : { type: 'REQUEST_COUNT', requestCount: 4 },
      ...(Object.keys(env.env).length > 0 && { env: env.env }),
    };
    create.mutateAsync({ path: '/v2/serverless', body }).then(
      ({ id }) => navigate({ to: `/serverless/${id}/playground` }),
      () => undefined,
    );
  };
  return (
    <Page
      title="New endpoint"
      crumbs={[{ to: '/serverless', label: 'Serverless' }]}
      description="An image that handles jobs, or serves HTTP."
    >
      {!write && <Note tone="warn">Your key may not create endpoints.</Note>}
      <Card title="From a folder of yours">
        <div className="stack">
          <p className="muted">
            A folder with a handler.ts, handler.js or handler.py becomes an endpoint with one command:
          </p>
          <Command>npx berth deploy ./my-folder</Command>
        </div>
      </Card>
      <Card title="From an image">
        <form className="stack lg" onSubmit={submit}>
          <Segmented
            label="Type"
            value={fields.type}
            options={[
              ['QUEUE', 'Queue: jobs'],
              ['LOAD_BALANCER', 'Load balancer: HTTP'],
            ]}
            onChange={(type) => set({ type })}
          />
          <div className="grid two">
            <TextField
              label="Name"
              required
              value={fields.name}
              onChange={(event) => set({ name: event.target.value })}
            />
            <SelectField
              label="Example"
              value={EXAMPLES.some(([image]) => image === fields.image) ? fields.image : ''}
              onChange={(event) => event.target.value !== '' && set({ image: event.target.value })}
              options={[...EXAMPLES, ['', 'An image of your own']]}
            />
            <TextField
              label="Image"
              required
              value={fields.image}
              onChange={(event) => set({ image: event.target.value })}
              hint="local/NAME runs without containers; any other image needs Docker or Kubernetes."
            />
            <SelectField
              label="Hardware"
              value={fields.hardware}
              onChange={(event) => set({ hardware: event.target.value })}
              options={[
                ['cpu', 'CPU, 2 vCPU and 4 GB'],
                ...pools.map((pool) => [pool, `GPU: ${pool}`] as const),
              ]}
            />
            <TextField
              label="Workers at least"
              type="number"
              min={0}
              value={fields.min}
              onChange={(event) => set({ min: event.target.value })}
              hint="0: nothing runs and costs while there is no work."
            />
            <TextField
              label="Workers at most"
              type="number"
              min={0}
              value={fields.max}
              onChange={(event) => set({ max: event.target.value })}
            />
          </div>
          <TextArea
            label="Environment variables"
            hint="NAME=value, one in a line; a whole .env file can be pasted."
            problem={env.problems[0]}
            value={fields.env}
            onChange={(event) => set({ env: event.target.value })}
          />
          {create.error !== null && <ErrorNote error={create.error} />}
          {write && (
            <div className="row end">
              <Button type="submit" look="primary" disabled={create.isPending || env.problems.length > 0}>
                Create the endpoint
              </Button>
            </div>
          )}
        </form>
      </Card>
    </Page>
  );
}
