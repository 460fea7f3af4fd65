import { useState } from 'react';
import type { FormEvent } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { useWrite } from '../../api/queries.ts';
import { usePermissions } from '../../api/session.ts';
import type { Endpoint } from '../../api/types.ts';
import { Button } from '../../components/button.tsx';
import { ConflictNote } from '../../components/conflict-note.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { useDraft } from '../../components/draft.ts';
import { CheckField, TextArea, TextField } from '../../components/form.tsx';
import { Card, Facts } from '../../components/page.tsx';
import { ErrorNote } from '../../components/states.tsx';
import { useToasts } from '../../components/toast.tsx';
import { hardwareOf, scalingOf } from './endpoint-words.ts';
import type { TabProps } from './tab-props.ts';
import { formatEnv, parseEnv } from '../../components/env-text.ts';

export default function SettingsTab({ endpoint }: TabProps) {
  const { write } = usePermissions();
  return write ? (
    <>
      <SettingsForm key={endpoint.id} endpoint={endpoint} />
      <Danger endpoint={endpoint} />
    </>
  ) : (
    <Card title="Settings">
      <Facts
        facts={[
          ['Image', <code key="image">{endpoint.image}</code>],
          ['Hardware', hardwareOf(endpoint)],
          ['Workers', `${endpoint.workers.min} to ${endpoint.workers.max}`],
          ['Scaling', scalingOf(endpoint)],
          ['Execution timeout', `${endpoint.timeout / 1000} s`],
          ['Variables', Object.keys(endpoint.env).join(', ') || 'none'],
        ]}
      />
    </Card>
  );
}

/** What is typed stays until it is saved, whatever the server answers or sends meanwhile. */
function SettingsForm({ endpoint }: { endpoint: Endpoint }) {
  const current = fieldsOf(endpoint);
  const { draft: fields, conflicts, change, reset } = useDraft(current);
  const save = useWrite<Endpoint>(`/v2/serverless/${endpoint.id}`, '=/v2/serverless');
  const toasts = useToasts();
  const env = parseEnv(fields.env);
  const input = (name: Exclude<keyof typeof fields, 'accelerate'>) => ({
    value: fields[name],
    onChange: (event: { target: { value: string } }) => change({ [name]: event.target.value }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save
      .mutateAsync({
        path: `/v2/serverless/${endpoint.id}`,
        method: 'PATCH',
        body: changes(endpoint, fields, env.env),
      })
      .then(
        () => {
          reset();
          toasts.done('Saved. A change of the container makes a new release');
        },
        () => undefined,
      );
  };
  return (
    <Card title="Settings">
      <form className="stack lg" onSubmit={submit}>
        <div className="grid two">
          <TextField label="Name" required {...input('name')} />
          <TextField label="Image" required {...input('image')} />
          <TextField label="Workers at least" type="number" min={0} {...input('min')} />
          <TextField label="Workers at most" type="number" min={0} {...input('max')} />
          {endpoint.workers.idleTimeout !== undefined && (
            <TextField
              label="Idle timeout in seconds"
              type="number"
              min={1}
              max={3600}
              hint="How long a worker without work is kept."
              {...input('idleTimeout')}
            />
          )}
          <TextField label="Execution timeout in seconds" type="number" min={5} {...input('timeout')} />
          <TextField label="Time to live of a job in seconds" type="number" min={10} {...input('jobTtl')} />
          <TextField label="Retries after a lost worker" type="number" min={0} {...input('maxRetries')} />
        </div>
        <TextArea
          label="Environment variables"
          hint={
            'NAME=value, one in a line; a whole .env file can be pasted. A secret is {{ ' +
            'RUNPOD_SECRET_name }}.'
          }
          problem={env.problems[0]}
          rows={6}
          {...input('env')}
        />
        <CheckField
          label="Accelerate workers with the public Python SDK"
          checked={fields.accelerate}
          onChange={(event) => change({ accelerate: event.target.checked })}
        />
        <ConflictNote fields={conflicts} current={current} />
        {save.error !== null && <ErrorNote error={save.error} />}
        <div className="row end">
          <Button type="submit" look="primary" disabled={save.isPending || env.problems.length > 0}>
            Save
          </Button>
        </div>
      </form>
    </Card>
  );
}

/** The settings as they are typed. */
function fieldsOf(endpoint: Endpoint) {
  return {
    name: endpoint.name,
    image: endpoint.image,
    min: String(endpoint.workers.min),
    max: String(endpoint.workers.max),
    idleTimeout: String(endpoint.workers.idleTimeout ?? ''),
    timeout: String(endpoint.timeout / 1000),
    jobTtl: String(endpoint.jobTtl / 1000),
    maxRetries: String(endpoint.maxRetries),
    env: formatEnv(endpoint.env),
    accelerate: endpoint.accelerate,
  };
}

/** Only what differs is sent: another tab may have changed the rest. */
function changes(
  endpoint: Endpoint,
  fields: ReturnType<typeof fieldsOf>,
  env: Record<string, string>,
): Record<string, unknown> {
  const { idleTimeout } = endpoint.workers;
  const next: Record<string, unknown> = {
    name: fields.name,
    image: fields.image,
    workers: {
      min: Number(fields.min),
      max: Number(fields.max),
      ...(idleTimeout !== undefined && { idleTimeout: Number(fields.idleTimeout) }),
    },
    timeout: Math.round(Number(fields.timeout) * 1000),
    jobTtl: Math.round(Number(fields.jobTtl) * 1000),
    maxRetries: Number(fields.maxRetries),
    env,
    accelerate: fields.accelerate,
  };
  const current = endpoint as unknown as Record<string, unknown>;
  const changed = Object.entries(next).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(current[name]),
  );
  return changed.length === 0 ? { name: fields.name } : Object.fromEntries(changed);
}

function Danger({ endpoint }: { endpoint: Endpoint }) {
  const [open, setOpen] = useState(false);
  const remove = useWrite('=/v2/serverless');
  const navigate = useNavigate();
  const toasts = useToasts();
  return (
    <Card
      title="Delete the endpoint"
      actions={
        <Button look="danger" onClick={() => setOpen(true)}>
          Delete …
        </Button>
      }
    >
      <p className="muted">Its address stops working at once, and its jobs and results are gone.</p>
      <ConfirmDialog
        open={open}
        onClose={() => setOpen(false)}
        title={`Delete ${endpoint.name}?`}
        lost={
          'Waiting and running jobs, stored results, releases and logs of its workers are lost. Network ' +
          'volumes, templates and the image stay.'
        }
        action="Delete the endpoint"
        word={endpoint.name}
        onConfirm={async () => {
          await remove.mutateAsync({ path: `/v2/serverless/${endpoint.id}`, method: 'DELETE' });
          toasts.done(`${endpoint.name} is deleted`);
          await navigate({ to: '/serverless' });
        }}
      />
    </Card>
  );
}
