import { useRef, useState } from 'react';
import { send } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Command } from '../../components/copy.tsx';
import { TextField } from '../../components/form.tsx';
import { plural } from '../../components/format.ts';
import { Card } from '../../components/page.tsx';
import { ErrorNote } from '../../components/states.tsx';
import { tarOf } from '../../components/tar.ts';
import { useToasts } from '../../components/toast.tsx';

/** Copies files of this computer into a folder of a running pod. */
export function PodUpload({ podId }: { podId: string }) {
  const input = useRef<HTMLInputElement>(null);
  const toasts = useToasts();
  const [folder, setFolder] = useState('.');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const upload = async (files: File[]): Promise<void> => {
    if (files.length === 0) return;
    setBusy(true);
    setError(undefined);
    try {
      await send(`/v2/pods/${podId}/files`, {
        method: 'PUT',
        query: { path: folder },
        raw: tarOf(files),
        headers: { 'content-type': 'application/x-tar' },
      });
      toasts.done(`${plural(files.length, 'file')} copied into ${folder}`);
    } catch (cause) {
      setError(cause as Error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card title="Copy into the pod">
      <div className="stack">
        <TextField
          label="Folder"
          className="input mono"
          value={folder}
          hint="It must exist. Files of the same name in it are replaced."
          onChange={(event) => setFolder(event.target.value)}
        />
        <input
          ref={input}
          type="file"
          multiple
          hidden
          aria-label="Files to copy into the pod"
          onChange={(event) => {
            void upload([...(event.target.files ?? [])]);
            event.target.value = '';
          }}
        />
        {error !== undefined && <ErrorNote error={error} />}
        <div className="row end">
          <Button variant="primary" disabled={busy || folder === ''} onClick={() => input.current?.click()}>
            {busy ? 'Uploading' : 'Choose files and upload'}
          </Button>
        </div>
        <p className="muted">Whole folders, from a terminal:</p>
        <Command>{`npx berth pod cp ./folder ${podId}:/path`}</Command>
      </div>
    </Card>
  );
}
