import { useState } from 'react';
import { api, queryText } from '../../api/client.ts';
import { SubmitForm } from '../../components/form-dialog.tsx';
import { TextField } from '../../components/form.tsx';
import { formatBytes } from '../../components/format.ts';
import { Card, Facts } from '../../components/page.tsx';
import { PodUpload } from './pod-upload.tsx';

interface PodFile {
  kind: 'file' | 'folder' | 'other';
  size: number;
  modifiedAt: string;
}

/** Copies out of a running pod and into it. A folder, or a file, comes as a tar archive. */
export function PodFiles({ podId }: { podId: string }) {
  const [path, setPath] = useState('.');
  const [found, setFound] = useState<{ path: string; file: PodFile }>();
  const find = async (): Promise<void> => {
    setFound({ path, file: await api<PodFile>(`/v2/pods/${podId}/files/info`, { query: { path } }) });
  };
  return (
    <div className="stack lg">
      <Card title="Copy out of the pod">
        <SubmitForm submit="Find" onSubmit={find}>
          <TextField
            label="Path"
            className="input mono"
            value={path}
            hint="As the pod sees it; without a slash in front it begins at its working folder"
            onChange={(event) => setPath(event.target.value)}
          />
          {found !== undefined && (
            <div className="stack" role="status">
              <Facts
                facts={[
                  ['Path', <code>{found.path}</code>],
                  ['Kind', found.file.kind],
                  ['Size', found.file.kind === 'folder' ? 'see the archive' : formatBytes(found.file.size)],
                  ['Changed', new Date(found.file.modifiedAt).toLocaleString()],
                ]}
              />
              <a
                className="button"
                href={`/v2/pods/${podId}/files${queryText({ path: found.path })}`}
                download={`${found.path.split('/').filter(Boolean).at(-1) ?? podId}.tar`}
              >
                Download as tar
              </a>
            </div>
          )}
        </SubmitForm>
      </Card>
      <PodUpload podId={podId} />
    </div>
  );
}
