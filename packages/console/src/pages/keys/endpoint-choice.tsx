import { useState } from 'react';
import { useAllPages } from '../../api/all-pages.ts';
import type { Endpoint } from '../../api/types.ts';
import { CheckField } from '../../components/form.tsx';
import { formatCount } from '../../components/format.ts';
import { Loaded } from '../../components/states.tsx';

/** More are found by searching. */
const MAX_SHOWN = 20;
const SEARCH_FROM = 6;

/** Which endpoints a key may call: any number of them, or none for all. */
export function EndpointChoice({
  chosen,
  onChange,
}: {
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
}) {
  const endpoints = useAllPages<Endpoint>('/v2/serverless', 'endpoints');
  const [search, setSearch] = useState('');
  const wanted = search.trim().toLowerCase();
  return (
    <fieldset className="plain stack">
      <legend>Endpoints</legend>
      <div className="muted">
        {chosen.length === 0
          ? 'None chosen: all of them, and those that are made later.'
          : `Only ${formatCount(chosen.length)} of them.`}
      </div>
      <Loaded of={endpoints} lines={2}>
        {(all) => {
          const found = all.filter(({ id, name }) => `${name} ${id}`.toLowerCase().includes(wanted));
          // What is chosen stays in sight.
          const shown = [
            ...all.filter(({ id }) => chosen.includes(id)),
            ...found.filter(({ id }) => !chosen.includes(id)).slice(0, MAX_SHOWN),
          ];
          return (
            <>
              {all.length >= SEARCH_FROM && (
                <input
                  className="input"
                  type="search"
                  aria-label="Search the endpoints"
                  placeholder="Search"
                  value={search}
                  onChange={({ target }) => setSearch(target.value)}
                />
              )}
              {shown.map(({ id, name }) => (
                <CheckField
                  key={id}
                  label={name}
                  hint={<code>{id}</code>}
                  checked={chosen.includes(id)}
                  onChange={({ target }) =>
                    onChange(target.checked ? [...chosen, id] : chosen.filter((each) => each !== id))
                  }
                />
              ))}
              {found.length > MAX_SHOWN && (
                <div className="muted">{formatCount(found.length)} match; search to see others.</div>
              )}
            </>
          );
        }}
      </Loaded>
    </fieldset>
  );
}
