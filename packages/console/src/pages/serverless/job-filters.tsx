import type { FormEvent } from 'react';
import { Button } from '../../components/button.tsx';
import type { JobSearch } from './job-search.ts';

const STATUSES = ['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'TIMED_OUT', 'CANCELLED'];

export function JobFilters({
  search,
  onChange,
}: {
  search: JobSearch;
  onChange: (search: JobSearch) => void;
}) {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const value = (name: string): string | undefined => String(fields.get(name) ?? '').trim() || undefined;
    onChange({
      ...search,
      status: value('status'),
      id: value('id'),
      text: value('text'),
      from: value('from'),
      to: value('to'),
    });
  };
  const isFiltered = Object.entries(search).some(
    ([name, value]) => name !== 'job' && name !== 'cursor' && value !== undefined,
  );
  return (
    <form className="toolbar" role="search" aria-label="Requests" onSubmit={submit}>
      <select
        className="input"
        name="status"
        aria-label="Status"
        defaultValue={search.status ?? ''}
        onChange={(event) => onChange({ ...search, status: event.target.value || undefined })}
      >
        <option value="">any status</option>
        {STATUSES.map((status) => (
          <option key={status} value={status}>
            {status.toLowerCase().replaceAll('_', ' ')}
          </option>
        ))}
      </select>
      <input
        className="input"
        name="id"
        aria-label="Id begins with"
        placeholder="Id begins with"
        defaultValue={search.id}
      />
      <input
        className="input grow"
        name="text"
        type="search"
        aria-label="Text in the input"
        placeholder="Text in the input"
        defaultValue={search.text}
      />
      <label className="row muted">
        from
        <input
          className="input"
          name="from"
          type="datetime-local"
          aria-label="Created after"
          defaultValue={search.from}
        />
      </label>
      <label className="row muted">
        until
        <input
          className="input"
          name="to"
          type="datetime-local"
          aria-label="Created before"
          defaultValue={search.to}
        />
      </label>
      <Button type="submit">Search</Button>
      {isFiltered && (
        <Button variant="quiet" onClick={() => onChange({})}>
          Clear
        </Button>
      )}
    </form>
  );
}
