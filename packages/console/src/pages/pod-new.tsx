import { useDeferredValue, useEffect, useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ApiError, api } from '../api/client.ts';
import { useAllPages } from '../api/all-pages.ts';
import { useWrite } from '../api/queries.ts';
import type { NetworkVolume, Pod, Template } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import {
  containerBody,
  containerDraft,
  containerProblems,
  EMPTY_CONTAINER,
} from '../components/container-draft.ts';
import { ContainerFields } from '../components/container-fields.tsx';
import type { ContainerDraft } from '../components/container-draft.ts';
import { SubmitForm } from '../components/form-dialog.tsx';
import { CheckField, SelectField, TextField } from '../components/form.tsx';
import { formatMoney } from '../components/format.ts';
import { Card, Facts, Page } from '../components/page.tsx';
import { EmptyState, ErrorNote, Note, Skeleton } from '../components/states.tsx';
import { useUrlState } from '../components/url-state.ts';
import { HardwareChoice } from './pods/hardware-choice.tsx';
import type { HardwareDraft } from './pods/hardware-choice.tsx';

interface PodCheck {
  ok: boolean;
  problem: { status: number; detail: string; errors?: string[] } | null;
  dataCenterId: string | null;
  costPerHour: number | null;
  vcpuCount: number | null;
  memory: number | null;
  interrupts: string[];
}

interface Draft extends ContainerDraft {
  name: string;
  mount: 'none' | 'persistent' | 'network';
  volumeSize: string;
  volumePath: string;
  ssh: boolean;
  jupyter: boolean;
}

const EMPTY: Draft = {
  ...EMPTY_CONTAINER,
  name: '',
  image: 'local/shell',
  args: 'sleep 86400',
  mount: 'none',
  volumeSize: '20',
  volumePath: '/workspace',
  ssh: false,
  jupyter: false,
};

export default function NewPodPage() {
  const { write } = usePermissions();
  return (
    <Page title="Deploy a pod" crumbs={[{ to: '/pods', label: 'Pods' }]}>
      {write ? (
        <NewPod />
      ) : (
        <EmptyState title="Your key may not create pods">
          Sign in with a key that may write, or ask whoever manages this account.
        </EmptyState>
      )}
    </Page>
  );
}

function NewPod() {
  const templates = useAllPages<Template>('/v2/templates', 'templates');
  const volumes = useAllPages<NetworkVolume>('/v2/network-volumes', 'networkVolumes');
  const create = useWrite<Pod>('/v2/pods');
  const navigate = useNavigate();
  const [compute, setCompute] = useUrlState('compute', 'gpu');
  const [type, setType] = useUrlState('type');
  const [count, setCount] = useUrlState('count', compute === 'gpu' ? '1' : '2');
  const [templateId, setTemplateId] = useUrlState('template');
  const [volumeId, setVolumeId] = useUrlState('volume');
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, mount: volumeId === '' ? 'none' : 'network' });
  const change = (part: Partial<Draft>): void => setDraft((current) => ({ ...current, ...part }));

  const template = templates.data?.find(({ id }) => id === templateId);
  useEffect(() => {
    if (template === undefined) return;
    const { persistent } = template.mounts;
    setDraft((current) => ({
      ...current,
      ...containerDraft(template),
      name: current.name || template.name,
      ...(persistent !== undefined && {
        mount: 'persistent',
        volumeSize: String(persistent.size),
        volumePath: persistent.path,
      }),
    }));
  }, [template]);

  const hardware: HardwareDraft = { compute: compute as HardwareDraft['compute'], type, count };
  const changeHardware = (part: Partial<HardwareDraft>): void => {
    if (part.compute !== undefined) setCompute(part.compute);
    if (part.type !== undefined) setType(part.type);
    if (part.count !== undefined) setCount(part.count);
  };
  const body = podBody(draft, hardware, volumeId);
  const problems = containerProblems(draft);
  const submit = async (): Promise<void> => {
    const pod = await create.mutateAsync({ path: '/v2/pods', body });
    await navigate({ to: `/pods/${pod.id}` });
  };
  return (
    <SubmitForm
      submit="Deploy"
      onSubmit={submit}
      disabled={problems.length > 0 || type === '' || draft.name === ''}
    >
      <div className="deploy">
        <div className="stack lg">
          <HardwareChoice draft={hardware} onChange={changeHardware} />
          <Card title="Container">
            <div className="stack">
              <div className="grid">
                <TextField
                  label="Name"
                  required
                  value={draft.name}
                  onChange={(event) => change({ name: event.target.value })}
                />
                <SelectField
                  label="Template"
                  value={templateId}
                  hint="Fills in the fields below"
                  onChange={(event) => setTemplateId(event.target.value)}
                  options={[
                    ['', 'none'],
                    ...(templates.data ?? [])
                      .filter(({ serverless }) => !serverless)
                      .map(({ id, name }) => [id, name] as const),
                  ]}
                />
              </div>
              <ContainerFields draft={draft} onChange={change} />
              <CheckField
                label="Give it my SSH keys"
                hint="In PUBLIC_KEY, for images with an SSH server; add 22/tcp to the ports"
                checked={draft.ssh}
                onChange={(event) => change({ ssh: event.target.checked })}
              />
              <CheckField
                label="Set a password for Jupyter"
                hint="In JUPYTER_PASSWORD"
                checked={draft.jupyter}
                onChange={(event) => change({ jupyter: event.target.checked })}
              />
            </div>
          </Card>
          <Card title="Storage">
            <div className="grid">
              <SelectField
                label="What is kept"
                value={draft.mount}
                onChange={(event) => change({ mount: event.target.value as Draft['mount'] })}
                options={[
                  ['none', 'nothing: emptied at each restart'],
                  ['persistent', 'a volume, until it is terminated'],
                  ['network', 'a network volume, which stays'],
                ]}
              />
              {draft.mount === 'persistent' && (
                <TextField
                  label="Volume, GB"
                  type="number"
                  min={10}
                  value={draft.volumeSize}
                  onChange={(event) => change({ volumeSize: event.target.value })}
                />
              )}
              {draft.mount === 'network' && (
                <SelectField
                  label="Network volume"
                  value={volumeId}
                  onChange={(event) => setVolumeId(event.target.value)}
                  options={[
                    ['', 'choose one'],
                    ...(volumes.data ?? []).map(
                      ({ id, name, dataCenter }) => [id, `${name} · ${dataCenter}`] as const,
                    ),
                  ]}
                />
              )}
              {draft.mount !== 'none' && (
                <TextField
                  label="Mounted at"
                  className="input mono"
                  value={draft.volumePath}
                  onChange={(event) => change({ volumePath: event.target.value })}
                />
              )}
            </div>
          </Card>
        </div>
        <aside aria-label="Cost and check">
          <CheckCard
            body={type === '' ? undefined : { ...body, name: draft.name || 'pod' }}
            problems={problems}
          />
        </aside>
      </div>
    </SubmitForm>
  );
}

/** What a deployment would answer now, asked while the form is filled in. */
function CheckCard({ body, problems }: { body: Record<string, unknown> | undefined; problems: string[] }) {
  const text = useDeferredValue(JSON.stringify(body));
  const check = useQuery<PodCheck, Error>({
    queryKey: ['/v2/pods/check', text],
    queryFn: ({ signal }) =>
      api('/v2/pods/check', { method: 'POST', body: JSON.parse(text) as unknown, signal }),
    enabled: body !== undefined && problems.length === 0,
    placeholderData: (previous) => previous,
    refetchInterval: 30_000,
  });
  return (
    <Card title="Cost">
      <div className="stack" aria-live="polite">
        {body === undefined ? (
          <p className="muted">Choose hardware to see what it costs, and whether it is free.</p>
        ) : problems.length > 0 ? (
          <Note tone="warn">{problems[0]}</Note>
        ) : check.error !== null ? (
          <CheckError error={check.error} />
        ) : check.data === undefined ? (
          <Skeleton lines={3} />
        ) : (
          <CheckResult check={check.data} />
        )}
      </div>
    </Card>
  );
}

function CheckResult({ check }: { check: PodCheck }) {
  if (!check.ok)
    return (
      <Note tone="bad">
        <strong>This would be refused now</strong>
        <span>{check.problem?.detail}</span>
      </Note>
    );
  return (
    <>
      <div className="stat" style={{ padding: 0 }}>
        <div className="value">{formatMoney(check.costPerHour ?? 0)} / h</div>
        <div className="label">while it runs; disks not counted</div>
      </div>
      <Facts
        facts={[
          ['Runs in', check.dataCenterId],
          ['vCPUs', check.vcpuCount],
          ['Memory', `${check.memory ?? 0} GB`],
        ]}
      />
      {check.interrupts.length > 0 && (
        <Note tone="warn">It interrupts your pod {check.interrupts.join(', ')} to make room.</Note>
      )}
      <Note tone="good">It can be deployed now.</Note>
    </>
  );
}

/** The form is not complete yet: said in the server's words. */
function CheckError({ error }: { error: Error }) {
  if (!(error instanceof ApiError) || error.status !== 422) return <ErrorNote error={error} />;
  return (
    <Note tone="warn">
      <strong>Not complete yet</strong>
      {(error.details.length > 0 ? error.details : [error.message]).map((line) => (
        <span key={line}>{line}</span>
      ))}
    </Note>
  );
}

function podBody(
  draft: Draft,
  { compute, type, count }: HardwareDraft,
  volumeId: string,
): Record<string, unknown> {
  const { mount, volumeSize, volumePath: path } = draft;
  return {
    name: draft.name,
    ...containerBody(draft),
    ...(compute === 'gpu'
      ? { gpu: { id: type, count: Number(count) } }
      : { cpu: { id: type, vcpuCount: Number(count) } }),
    ...(mount === 'persistent' && { mounts: { persistent: { size: Number(volumeSize), path } } }),
    ...(mount === 'network' && volumeId !== '' && { mounts: { network: [{ volumeId, path }] } }),
    ...(draft.ssh && { startSsh: true }),
    ...(draft.jupyter && { startJupyter: true }),
  };
}
