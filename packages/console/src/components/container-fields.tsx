import { useApi } from '../api/queries.ts';
import type { ContainerDraft } from './container-draft.ts';
import { parseEnv, parsePorts } from './env-text.ts';
import { SelectField, TextArea, TextField } from './form.tsx';

export function ContainerFields({
  draft,
  onChange,
  withRegistry = true,
}: {
  draft: ContainerDraft;
  onChange: (change: Partial<ContainerDraft>) => void;
  withRegistry?: boolean;
}) {
  const registries = useApi<{ registries: { id: string; name: string }[] }>('/v2/registries', {
    enabled: withRegistry,
  });
  return (
    <>
      <TextField
        label="Image"
        className="input mono"
        value={draft.image}
        hint="A container image with its tag, or local/shell for a command on this machine"
        onChange={(event) => onChange({ image: event.target.value })}
      />
      <TextField
        label="Command"
        className="input mono"
        value={draft.args}
        hint="Split as a shell would; empty: the image decides"
        onChange={(event) => onChange({ args: event.target.value })}
      />
      <div className="grid">
        <TextField
          label="Ports"
          className="input mono"
          value={draft.ports}
          placeholder="8888/http, 22/tcp"
          problem={parsePorts(draft.ports).problem}
          onChange={(event) => onChange({ ports: event.target.value })}
        />
        <TextField
          label="Container disk, GB"
          inputMode="numeric"
          value={draft.disk}
          hint="Emptied at every restart"
          onChange={(event) => onChange({ disk: event.target.value })}
        />
        {withRegistry && (
          <SelectField
            label="Registry"
            value={draft.registry}
            onChange={(event) => onChange({ registry: event.target.value })}
            options={[
              ['', 'none: a public image'],
              ...(registries.data?.registries ?? []).map(({ id, name }) => [id, name] as const),
            ]}
          />
        )}
      </div>
      <TextArea
        label="Environment variables"
        value={draft.env}
        placeholder={'NAME=value\nTOKEN={{ RUNPOD_SECRET_name }}'}
        hint="One NAME=value in each line; a whole .env file can be pasted"
        problem={parseEnv(draft.env).problems[0]}
        onChange={(event) => onChange({ env: event.target.value })}
      />
    </>
  );
}
