import { useEffect, useState } from 'react';
import { useNavigate, useRouterState } from '@tanstack/react-router';
import { useWrite } from '../api/queries.ts';
import type { NetworkVolume } from '../api/resources.ts';
import { ConfirmDialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { TextField } from '../components/form.tsx';
import { formatBytes } from '../components/format.ts';

const PATH = '/v2/network-volumes';
const BYTES_PER_GB = 1024 ** 3;

export interface VolumeChange {
  kind: 'update' | 'delete';
  volume: NetworkVolume;
}

/** Renames, grows or deletes a volume; from the list and from its own page. */
export function VolumeDialogs({
  change,
  onClose,
}: {
  change: VolumeChange | undefined;
  onClose: () => void;
}) {
  const save = useWrite(PATH);
  const navigate = useNavigate();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const [draft, setDraft] = useState({ name: '', size: '' });
  const volume = change?.volume;
  useEffect(() => {
    if (volume !== undefined) setDraft({ name: volume.name, size: String(volume.size) });
  }, [volume]);
  const remove = async (): Promise<void> => {
    await save.mutateAsync({ path: `${PATH}/${volume?.id ?? ''}`, method: 'DELETE' });
    if (path !== '/storage') await navigate({ to: '/storage' });
  };
  return (
    <>
      <FormDialog
        open={change?.kind === 'update'}
        onClose={onClose}
        title="Rename or grow"
        description="A volume grows at once, without a restart of what mounts it. It cannot shrink."
        submit="Save"
        onSubmit={() =>
          save.mutateAsync({
            path: `${PATH}/${volume?.id ?? ''}`,
            method: 'PATCH',
            body: { name: draft.name, size: Number(draft.size) },
          })
        }
      >
        <TextField
          label="Name"
          required
          value={draft.name}
          onChange={(event) => setDraft({ ...draft, name: event.target.value })}
        />
        <TextField
          label="Size, GB"
          type="number"
          min={volume?.size}
          required
          value={draft.size}
          onChange={(event) => setDraft({ ...draft, size: event.target.value })}
        />
      </FormDialog>
      <ConfirmDialog
        open={change?.kind === 'delete'}
        onClose={onClose}
        title={`Delete the volume ${volume?.name ?? ''}?`}
        lost={
          'All files on it are lost' +
          `${volume?.used === null || volume === undefined ? '' : `: ${formatBytes(volume.used)}`}. ` +
          'This cannot be undone.'
        }
        action="Delete the volume"
        {...(volume !== undefined && { word: volume.name })}
        onConfirm={remove}
      />
    </>
  );
}

export function VolumeUsage({ volume: { used, size } }: { volume: NetworkVolume }) {
  if (used === null) return <span className="muted">{size} GB, being counted</span>;
  const share = Math.min(100, (used / (size * BYTES_PER_GB)) * 100);
  return (
    <div className="stack" style={{ gap: 4, minWidth: 140 }}>
      <span>
        {formatBytes(used)} of {size} GB
      </span>
      <div className="meter" aria-hidden="true">
        <span style={{ width: `${share}%` }} />
      </div>
    </div>
  );
}
