import { useApi } from '../../../api/queries.ts';
import type { CpuType, GpuType } from '../../../api/resources.ts';
import type { Endpoint } from '../../../api/types.ts';
import { Button } from '../../../components/button.tsx';
import { CheckField, SelectField, TextField } from '../../../components/form.tsx';
import { formatMoney } from '../../../components/format.ts';
import { Loaded } from '../../../components/states.tsx';
import { FIELD_LABELS, joinCpu, joinList, splitCpu, splitList } from './endpoint-fields.ts';
import type { EndpointFields } from './endpoint-fields.ts';
import { isSelected, poolOf, toggleType } from './gpu-selection.ts';

interface Props {
  endpoint: Endpoint;
  draft: EndpointFields;
  change: (next: Partial<EndpointFields>) => void;
}

/** The kind of hardware is fixed; of that kind, anything in the catalog. */
export function HardwareFields(props: Props) {
  return props.endpoint.gpu === null ? <CpuFields {...props} /> : <GpuFields {...props} />;
}

function GpuFields({ draft, change }: Props) {
  const gpus = useApi<{ gpus: GpuType[] }>('/v2/catalog/gpus');
  const selection = { pools: splitList(draft.gpuPools), excludedTypes: splitList(draft.excludedGpuTypes) };
  return (
    <Loaded of={gpus}>
      {({ gpus: all }) => {
        const isNear = (gpu: GpuType): boolean => gpu.maxCount.secure > 0 || isSelected(selection, gpu);
        const toggle = (gpu: GpuType): void => {
          const next = toggleType(selection, gpu, all);
          change({ gpuPools: joinList(next.pools), excludedGpuTypes: joinList(next.excludedTypes) });
        };
        const list = (types: GpuType[]) => (
          <div className="choice-grid">
            {types.map((gpu) => (
              <CheckField
                key={gpu.id}
                label={gpu.name}
                hint={
                  `${poolOf(gpu)} · ${gpu.memory} GB · ${formatMoney(gpu.price.serverless)} per hour` +
                  (gpu.virtual ? ' · virtual: no hardware behind it' : '')
                }
                checked={isSelected(selection, gpu)}
                onChange={() => toggle(gpu)}
              />
            ))}
          </div>
        );
        const far = all.filter((gpu) => !isNear(gpu));
        return (
          <div className="stack">
            <fieldset className="plain">
              <legend>GPU types that a worker may have</legend>
              {list(all.filter(isNear))}
              {far.length > 0 && (
                <details>
                  <summary>{far.length} types of which none is connected</summary>
                  {list(far)}
                </details>
              )}
            </fieldset>
            <TextField
              label={FIELD_LABELS.gpuCount}
              inputMode="numeric"
              value={draft.gpuCount}
              onChange={(event) => change({ gpuCount: event.target.value })}
            />
          </div>
        );
      }}
    </Loaded>
  );
}

function CpuFields({ draft, change }: Props) {
  const cpus = useApi<{ cpus: CpuType[] }>('/v2/catalog/cpus');
  const choices = splitCpu(draft.cpu);
  const set = (next: typeof choices): void => change({ cpu: joinCpu(next) });
  return (
    <Loaded of={cpus}>
      {({ cpus: flavors }) => (
        <fieldset className="plain stack">
          <legend>What a worker may run on, the most wanted first</legend>
          {choices.map(({ id, vcpuCount }, index) => {
            const flavor = flavors.find((each) => each.id === id);
            const replace = (part: Partial<(typeof choices)[number]>): void =>
              set(choices.map((choice, at) => (at === index ? { ...choice, ...part } : choice)));
            return (
              <div className="row" key={index}>
                <SelectField
                  label={`CPU flavour ${index + 1}`}
                  value={id}
                  options={flavors.map((each) => [
                    each.id,
                    `${each.name} (${each.id}), ${formatMoney(each.price.serverlessPerVcpu)} per vCPU and hour`,
                  ])}
                  onChange={(event) => replace({ id: event.target.value })}
                />
                <SelectField
                  label={`vCPUs ${index + 1}`}
                  value={String(vcpuCount)}
                  options={countsOf(flavor, vcpuCount).map((count) => [
                    String(count),
                    `${count}, ${count * (flavor?.ramGbPerVcpu ?? 2)} GB`,
                  ])}
                  onChange={(event) => replace({ vcpuCount: Number(event.target.value) })}
                />
                {choices.length > 1 && (
                  <Button
                    small
                    aria-label={`Remove CPU flavour ${index + 1}`}
                    onClick={() => set(choices.filter((_, at) => at !== index))}
                  >
                    Remove
                  </Button>
                )}
              </div>
            );
          })}
          <div>
            <Button
              small
              disabled={flavors.length === 0}
              onClick={() => {
                const next = flavors.find((each) => !choices.some(({ id }) => id === each.id)) ?? flavors[0];
                if (next !== undefined)
                  set([...choices, { id: next.id, vcpuCount: countsOf(next)[0] ?? next.vcpu.min }]);
              }}
            >
              Add another flavour
            </Button>
          </div>
        </fieldset>
      )}
    </Loaded>
  );
}

/** Powers of two that the flavour has, and what is chosen now. */
function countsOf(flavor: CpuType | undefined, chosen?: number): number[] {
  const counts: number[] = [];
  if (flavor !== undefined)
    for (let count = 2 ** Math.ceil(Math.log2(flavor.vcpu.min)); count <= flavor.vcpu.max; count *= 2)
      counts.push(count);
  return chosen === undefined || counts.includes(chosen) ? counts : [...counts, chosen];
}
