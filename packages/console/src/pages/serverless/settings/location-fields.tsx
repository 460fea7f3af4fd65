import type { ReactNode } from 'react';
import { Link } from '@tanstack/react-router';
import type { UseQueryResult } from '@tanstack/react-query';
import { useApi } from '../../../api/queries.ts';
import type { DataCenter, NetworkVolume } from '../../../api/resources.ts';
import { CheckField } from '../../../components/form.tsx';
import { Loaded } from '../../../components/states.tsx';
import { joinList, splitList } from './endpoint-fields.ts';

export function DataCenterField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const dataCenters = useApi<{ dataCenters: DataCenter[] }>('/v2/catalog/datacenters');
  return (
    <Loaded of={dataCenters}>
      {({ dataCenters }) => (
        <Choices
          legend="Data centers"
          about="None: anywhere."
          value={value}
          options={dataCenters.map(({ id, name }) => ({ id, label: id, hint: name === id ? '' : name }))}
          onChange={onChange}
        />
      )}
    </Loaded>
  );
}

export function VolumeField({
  volumes,
  value,
  onChange,
}: {
  volumes: UseQueryResult<NetworkVolume[], Error>;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Loaded of={volumes}>
      {(found) => (
        <Choices
          legend="Network volumes"
          about={
            found.length === 0 ? (
              <>
                There are none yet: make one under <Link to="/storage">Storage</Link>.
              </>
            ) : (
              'At most one in each data center; workers run only in those.'
            )
          }
          value={value}
          options={found.map(({ id, name, dataCenter, size }) => ({
            id,
            label: name,
            hint: `${dataCenter} · ${size} GB · ${id}`,
          }))}
          onChange={onChange}
        />
      )}
    </Loaded>
  );
}

/** Any number of a list. What is chosen and not in the list any more can be taken out. */
function Choices({
  legend,
  about,
  value,
  options,
  onChange,
}: {
  legend: string;
  about: ReactNode;
  value: string;
  options: { id: string; label: string; hint: string }[];
  onChange: (value: string) => void;
}) {
  const chosen = splitList(value);
  const gone = chosen.filter((id) => !options.some((option) => option.id === id));
  const all = [...options, ...gone.map((id) => ({ id, label: id, hint: 'is not there any more' }))];
  return (
    <fieldset className="plain stack">
      <legend>{legend}</legend>
      <div className="muted">{about}</div>
      {all.map(({ id, label, hint }) => (
        <CheckField
          key={id}
          label={label}
          {...(hint !== '' && { hint })}
          checked={chosen.includes(id)}
          onChange={({ target }) =>
            onChange(joinList(target.checked ? [...chosen, id] : chosen.filter((each) => each !== id)))
          }
        />
      ))}
    </fieldset>
  );
}
