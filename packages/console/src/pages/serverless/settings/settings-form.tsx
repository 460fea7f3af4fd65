import type { FormEvent } from 'react';
import { useAllPages } from '../../../api/all-pages.ts';
import { useWrite } from '../../../api/queries.ts';
import type { NetworkVolume } from '../../../api/resources.ts';
import type { Endpoint } from '../../../api/types.ts';
import { Button } from '../../../components/button.tsx';
import { ConflictNote } from '../../../components/conflict-note.tsx';
import { containerProblems } from '../../../components/container-draft.ts';
import { ContainerFields } from '../../../components/container-fields.tsx';
import { useDraft } from '../../../components/draft.ts';
import { CheckField, SelectField, TextField } from '../../../components/form.tsx';
import { Card } from '../../../components/page.tsx';
import { ErrorNote, Note } from '../../../components/states.tsx';
import { useToasts } from '../../../components/toast.tsx';
import {
  describeChanges,
  endpointFields,
  FIELD_LABELS,
  hasIdleTimeout,
  makesRelease,
  changedFields,
  SCALER_WORDS,
  updateBody,
} from './endpoint-fields.ts';
import type { EndpointFields, FieldChange, Scaler } from './endpoint-fields.ts';
import { HardwareFields } from './hardware-fields.tsx';
import { DataCenterField, VolumeField } from './location-fields.tsx';

const FLASHBOOT_OPTIONS = [
  ['OFF', 'off: a stopped worker is gone'],
  ['FLASHBOOT', 'on: stopped workers are kept for a faster start'],
  ['PRIORITY_FLASHBOOT', 'first: kept before those of other endpoints'],
] as const;

interface FieldsProps {
  endpoint: Endpoint;
  draft: EndpointFields;
  change: (next: Partial<EndpointFields>) => void;
}

/** What is typed stays until it is saved, whatever the server answers or sends meanwhile. */
export function SettingsForm({ endpoint }: { endpoint: Endpoint }) {
  const current = endpointFields(endpoint);
  const { draft, conflicts, change, reset } = useDraft(current);
  const volumes = useAllPages<NetworkVolume>('/v2/network-volumes', 'networkVolumes');
  const save = useWrite<Endpoint>(`/v2/serverless/${endpoint.id}`, '=/v2/serverless');
  const toasts = useToasts();
  const volumeName = (id: string): string => volumes.data?.find((volume) => volume.id === id)?.name ?? id;
  const changes = describeChanges(endpoint, draft, volumeName);
  const isRelease = makesRelease(changedFields(endpoint, draft));
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    save
      .mutateAsync({
        path: `/v2/serverless/${endpoint.id}`,
        method: 'PATCH',
        body: updateBody(endpoint, draft),
      })
      .then(
        () => {
          reset();
          toasts.done(isRelease ? 'Saved as a new release' : 'Saved');
        },
        () => undefined,
      );
  };
  const props = { endpoint, draft, change };
  return (
    // The server checks the values, and says what is wrong in its own words.
    <form className="stack lg" noValidate onSubmit={submit}>
      <Card title="Container">
        <div className="stack">
          <NumberOrText {...props} name="name" />
          <ContainerFields draft={draft} onChange={change} />
          <CheckField
            label="Accelerate workers with the public Python SDK"
            checked={draft.accelerate}
            onChange={(event) => change({ accelerate: event.target.checked })}
          />
        </div>
      </Card>
      <Card title="Scaling">
        <ScalingFields {...props} />
      </Card>
      <Card title="Hardware">
        <HardwareFields {...props} />
      </Card>
      <Card title="Place">
        <div className="grid two">
          <DataCenterField value={draft.dataCenters} onChange={(dataCenters) => change({ dataCenters })} />
          <VolumeField
            volumes={volumes}
            value={draft.networkVolumes}
            onChange={(networkVolumes) => change({ networkVolumes })}
          />
        </div>
      </Card>
      <Card title="Jobs">
        <div className="grid two">
          <NumberOrText {...props} name="timeout" hint="How long a job may run; 0: no limit." />
          <NumberOrText
            {...props}
            name="jobTtl"
            hint="From submission until it is dropped, whatever its state."
          />
          <NumberOrText {...props} name="retention" hint="After its end; empty: the built-in time." />
          <NumberOrText {...props} name="maxRetries" />
        </div>
      </Card>
      <Card title="Changes">
        <div className="stack">
          <ChangeList changes={changes} isRelease={isRelease} />
          <ConflictNote fields={conflicts} current={current} labels={FIELD_LABELS} />
          {save.error !== null && <ErrorNote error={save.error} />}
          <div className="row end">
            {changes.length > 0 && <Button onClick={reset}>Discard</Button>}
            <Button
              type="submit"
              variant="primary"
              disabled={save.isPending || changes.length === 0 || containerProblems(draft).length > 0}
            >
              Save
            </Button>
          </div>
        </div>
      </Card>
    </form>
  );
}

function ScalingFields({ endpoint, draft, change }: FieldsProps) {
  const props = { endpoint, draft, change };
  return (
    <div className="grid two">
      <NumberOrText {...props} name="min" hint="They run, and cost, without work too." />
      <NumberOrText {...props} name="max" hint="0: jobs wait." />
      <SelectField
        label={FIELD_LABELS.scaler}
        value={draft.scaler}
        disabled={endpoint.type === 'LOAD_BALANCER'}
        options={Object.entries(SCALER_WORDS)}
        onChange={(event) => change({ scaler: event.target.value as Scaler })}
      />
      {draft.scaler === 'QUEUE_DELAY' ? (
        <NumberOrText {...props} name="queueDelay" hint="A worker is added when one waits longer." />
      ) : (
        <NumberOrText {...props} name="requestCount" />
      )}
      {hasIdleTimeout(endpoint, draft) && (
        <NumberOrText {...props} name="idleTimeout" hint="How long a worker without work is kept." />
      )}
      <SelectField
        label={FIELD_LABELS.flashboot}
        value={draft.flashboot}
        options={FLASHBOOT_OPTIONS}
        onChange={(event) => change({ flashboot: event.target.value })}
      />
    </div>
  );
}

function NumberOrText({
  draft,
  change,
  name,
  hint,
}: FieldsProps & { name: Exclude<keyof EndpointFields, 'accelerate' | 'scaler'>; hint?: string }) {
  return (
    <TextField
      label={FIELD_LABELS[name]}
      inputMode={name === 'name' ? 'text' : 'decimal'}
      {...(hint !== undefined && { hint })}
      value={draft[name]}
      onChange={(event) => change({ [name]: event.target.value })}
    />
  );
}

function ChangeList({ changes, isRelease }: { changes: FieldChange[]; isRelease: boolean }) {
  if (changes.length === 0) return <p className="muted">Nothing is changed yet.</p>;
  return (
    <>
      <ul className="stack plain-list" aria-label="What is saved">
        {changes.map(({ label, from, to }) => (
          <li key={label}>
            {label}: <del>{from}</del> → <ins>{to}</ins>
          </li>
        ))}
      </ul>
      {isRelease && (
        <Note>
          This makes a new release: new workers start with it, and those that run end their jobs first.
        </Note>
      )}
    </>
  );
}
