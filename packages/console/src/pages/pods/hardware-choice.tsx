import { useApi } from '../../api/queries.ts';
import type { Availability, CpuType, GpuType } from '../../api/resources.ts';
import { Badge } from '../../components/badge.tsx';
import type { Tone } from '../../components/badge.tsx';
import { SelectField, Segmented } from '../../components/form.tsx';
import { formatMoney } from '../../components/format.ts';
import { Card } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';

const STOCK: Record<Availability, { tone: Tone; text: string }> = {
  HIGH: { tone: 'good', text: 'high stock' },
  MEDIUM: { tone: 'good', text: 'medium stock' },
  LOW: { tone: 'warn', text: 'low stock' },
  NONE: { tone: 'idle', text: 'none free' },
};

export interface HardwareDraft {
  compute: 'gpu' | 'cpu';
  type: string;
  count: string;
}

/** GPU and CPU types with their price and stock, as the catalog has them now. */
export function HardwareChoice({
  draft,
  onChange,
}: {
  draft: HardwareDraft;
  onChange: (change: Partial<HardwareDraft>) => void;
}) {
  return (
    <Card
      title="Hardware"
      actions={
        <Segmented
          label="Kind of hardware"
          value={draft.compute}
          options={[
            ['gpu', 'GPU'],
            ['cpu', 'CPU'],
          ]}
          onChange={(compute) => onChange({ compute, type: '', count: compute === 'gpu' ? '1' : '2' })}
        />
      }
    >
      {draft.compute === 'gpu' ? (
        <GpuChoice draft={draft} onChange={onChange} />
      ) : (
        <CpuChoice draft={draft} onChange={onChange} />
      )}
    </Card>
  );
}

interface ChoiceProps {
  draft: HardwareDraft;
  onChange: (change: Partial<HardwareDraft>) => void;
}

function GpuChoice({ draft, onChange }: ChoiceProps) {
  const gpus = useApi<{ gpus: GpuType[] }>('/v2/catalog/gpus', {
    query: { include: 'AVAILABILITY', product: 'POD' },
    everyMs: 30_000,
  });
  return (
    <Loaded of={gpus}>
      {(answer) => {
        const connected = answer.gpus.filter(isConnected);
        const chosen = answer.gpus.find(({ id }) => id === draft.type);
        if (connected.length === 0)
          return (
            <p>
              No GPU is connected here. Start Berth with <code>BERTH_GPUS=virtual</code> to try definitions
              without one, or choose CPU.
            </p>
          );
        return (
          <div className="stack">
            <div className="choice-grid">
              {connected.map((gpu) => (
                <Choice
                  key={gpu.id}
                  name={gpu.name}
                  about={`${gpu.memory} GB${gpu.virtual ? ' · virtual: no hardware behind it' : ''}`}
                  price={`${formatMoney(gpu.price.secure)} per GPU and hour`}
                  stock={gpu.availability}
                  chosen={gpu.id === draft.type}
                  onChoose={() => onChange({ type: gpu.id })}
                />
              ))}
            </div>
            {chosen !== undefined && (
              <CountField
                label="GPUs"
                value={draft.count}
                counts={range(chosen.maxCount.secure)}
                onChange={(count) => onChange({ count })}
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

function CpuChoice({ draft, onChange }: ChoiceProps) {
  const cpus = useApi<{ cpus: CpuType[] }>('/v2/catalog/cpus', {
    query: { include: 'AVAILABILITY', product: 'POD' },
    everyMs: 30_000,
  });
  return (
    <Loaded of={cpus}>
      {(answer) => {
        const chosen = answer.cpus.find(({ id }) => id === draft.type);
        return (
          <div className="stack">
            <div className="choice-grid">
              {answer.cpus.map((cpu) => (
                <Choice
                  key={cpu.id}
                  name={cpu.name}
                  about={`${cpu.id} · ${cpu.ramGbPerVcpu} GB for each vCPU`}
                  price={`${formatMoney(cpu.price.securePerVcpu)} per vCPU and hour`}
                  stock={cpu.availability}
                  chosen={cpu.id === draft.type}
                  onChoose={() => onChange({ type: cpu.id })}
                />
              ))}
            </div>
            {chosen !== undefined && (
              <CountField
                label="vCPUs"
                value={draft.count}
                counts={powersOfTwo(chosen.vcpu.min, chosen.vcpu.max)}
                onChange={(count) => onChange({ count })}
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

function Choice({
  name,
  about,
  price,
  stock,
  chosen,
  onChoose,
}: {
  name: string;
  about: string;
  price: string;
  stock: Availability | undefined;
  chosen: boolean;
  onChoose: () => void;
}) {
  const { tone, text } = STOCK[stock ?? 'NONE'];
  return (
    <button type="button" className="choice" aria-pressed={chosen} onClick={onChoose}>
      <strong>{name}</strong>
      <span className="muted">{about}</span>
      <span className="price">{price}</span>
      <span>
        <Badge tone={tone}>{text}</Badge>
      </span>
    </button>
  );
}

function CountField({
  label,
  value,
  counts,
  onChange,
}: {
  label: string;
  value: string;
  counts: number[];
  onChange: (count: string) => void;
}) {
  return (
    <SelectField
      label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      options={counts.map((count) => [String(count), String(count)] as const)}
    />
  );
}

/** Known types of which nothing is connected would only be in the way. */
function isConnected({ maxCount, availability }: GpuType): boolean {
  return maxCount.secure > 0 || (availability ?? 'NONE') !== 'NONE';
}

function range(most: number): number[] {
  return Array.from({ length: Math.max(1, most) }, (_, index) => index + 1);
}

function powersOfTwo(least: number, most: number): number[] {
  const counts: number[] = [];
  for (let count = 2 ** Math.ceil(Math.log2(least)); count <= most; count *= 2) counts.push(count);
  return counts;
}
