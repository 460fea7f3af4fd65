import { useState } from 'react';
import { useParams } from '@tanstack/react-router';
import { useAllPages } from '../api/all-pages.ts';
import { queryText } from '../api/client.ts';
import { useApi, useWrite } from '../api/queries.ts';
import type { NetworkVolume } from '../api/resources.ts';
import { usePermissions } from '../api/session.ts';
import { Button, LinkButton } from '../components/button.tsx';
import { Command } from '../components/copy.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { TextField } from '../components/form.tsx';
import { formatBytes } from '../components/format.ts';
import { Card, Facts, Page } from '../components/page.tsx';
import { ResourceList } from '../components/resource-list.tsx';
import { EmptyState, ErrorNote, Skeleton } from '../components/states.tsx';
import { Ago } from '../components/time.tsx';
import { useUrlState } from '../components/url-state.ts';
import { VolumeDialogs, VolumeUsage } from './volume-dialogs.tsx';
import type { VolumeChange } from './volume-dialogs.tsx';
import { VolumeUpload } from './volume-upload.tsx';

interface VolumeFile {
  name: string;
  kind: 'file' | 'folder';
  size: number;
  modifiedAt: string | null;
}

export default function VolumePage() {
  const { id = '' }: { id?: string } = useParams({ strict: false });
  const volume = useApi<NetworkVolume>(`/v2/network-volumes/${id}`);
  const { write } = usePermissions();
  const [change, setChange] = useState<VolumeChange>();
  const crumbs = [{ to: '/storage', label: 'Storage' }];
  if (volume.data === undefined)
    return (
      <Page title="Volume" crumbs={crumbs}>
        {volume.error === null ? <Skeleton /> : <ErrorNote error={volume.error} />}
      </Page>
    );
  const found = volume.data;
  return (
    <Page
      title={found.name}
      crumbs={crumbs}
      description={<code>{found.id}</code>}
      actions={
        write && (
          <>
            <LinkButton to="/pods/new" search={{ volume: found.id }}>
              Deploy a pod with it
            </LinkButton>
            <Button onClick={() => setChange({ kind: 'update', volume: found })}>Rename or grow</Button>
            <Button variant="danger" onClick={() => setChange({ kind: 'delete', volume: found })}>
              Delete
            </Button>
          </>
        )
      }
    >
      <Files volumeId={found.id} write={write} />
      <div className="grid two">
        <Card title="About">
          <Facts
            facts={[
              ['Used', <VolumeUsage volume={found} />],
              ['Data center', found.dataCenter],
              ['Tier', found.type.toLowerCase().replace('_', ' ')],
            ]}
          />
        </Card>
        <Card title="From a terminal">
          <div className="stack">
            <Command>{`npx berth volume cp ./models ${found.id}:/models`}</Command>
            <Command>
              {`aws s3 ls s3://${found.id}/ \\\n  --endpoint-url ${location.origin}/s3 \\\n` +
                `  --region ${found.dataCenter}`}
            </Command>
          </div>
        </Card>
      </div>
      <VolumeDialogs change={change} onClose={() => setChange(undefined)} />
    </Page>
  );
}

function Files({ volumeId, write }: { volumeId: string; write: boolean }) {
  const base = `/v2/network-volumes/${volumeId}`;
  const [folder, setFolder] = useUrlState('path');
  const files = useAllPages<VolumeFile>(`${base}/files`, 'files', { query: { path: folder } });
  const save = useWrite(base);
  const [doomed, setDoomed] = useState<VolumeFile>();
  const [newFolder, setNewFolder] = useState<string>();
  const pathOf = (name: string): string => (folder === '' ? name : `${folder}/${name}`);
  const listed = { ...files, data: files.data?.toSorted(foldersFirst) };
  return (
    <>
      <ResourceList
        label="Files"
        title="Files"
        of={listed as typeof files}
        headerActions={
          write && (
            <>
              <Button onClick={() => setNewFolder('')}>New folder</Button>
              <VolumeUpload base={base} folder={folder} present={files.data ?? []} />
            </>
          )
        }
        {...((folder !== '' || files.data?.length !== 0) && {
          filters: <FolderPath folder={folder} onOpen={setFolder} />,
        })}
        rowKey={({ name, kind }) => `${kind} ${name}`}
        rowName={({ name }) => name}
        searchText={({ name }) => name}
        columns={[
          {
            header: 'Name',
            cell: ({ name, kind }) =>
              kind === 'folder' ? (
                <Button small variant="quiet" onClick={() => setFolder(pathOf(name))}>
                  📁 {name}
                </Button>
              ) : (
                <a href={`${base}/files/content${queryText({ path: pathOf(name) })}`} download={name}>
                  {name}
                </a>
              ),
          },
          {
            header: 'Size',
            kind: 'number',
            cell: ({ kind, size }) => (kind === 'folder' ? '' : formatBytes(size)),
          },
          {
            header: 'Changed',
            cell: ({ modifiedAt }) => (modifiedAt === null ? '' : <Ago at={modifiedAt} />),
          },
        ]}
        rowActions={
          write ? (file) => [{ label: 'Delete', danger: true, onSelect: () => setDoomed(file) }] : undefined
        }
        empty={
          <EmptyState
            title={folder === '' ? 'No files yet' : 'This folder is empty'}
            command={`npx berth volume cp ./models ${volumeId}:/${folder}`}
          >
            Upload files with the button above, or whole folders from a terminal.
          </EmptyState>
        }
      />
      <FormDialog
        open={newFolder !== undefined}
        onClose={() => setNewFolder(undefined)}
        title="New folder"
        submit="Create"
        onSubmit={() =>
          save.mutateAsync({ path: `${base}/folders`, body: { path: pathOf(newFolder ?? '') } })
        }
      >
        <TextField
          label="Name"
          required
          value={newFolder ?? ''}
          onChange={(event) => setNewFolder(event.target.value)}
        />
      </FormDialog>
      <ConfirmDialog
        open={doomed !== undefined}
        onClose={() => setDoomed(undefined)}
        title={`Delete ${doomed?.name ?? ''}?`}
        lost={
          doomed?.kind === 'folder'
            ? 'The folder and every file below it are lost. This cannot be undone.'
            : `The file is lost (${formatBytes(doomed?.size ?? 0)}). This cannot be undone.`
        }
        action={doomed?.kind === 'folder' ? 'Delete the folder' : 'Delete the file'}
        onConfirm={() =>
          save.mutateAsync({
            path: `${base}/files`,
            method: 'DELETE',
            query: { path: pathOf(doomed?.name ?? ''), recursive: doomed?.kind === 'folder' },
          })
        }
      />
    </>
  );
}

/** The way to the folder: each part opens it. */
function FolderPath({ folder, onOpen }: { folder: string; onOpen: (folder: string) => void }) {
  const names = folder.split('/').filter(Boolean);
  return (
    <nav aria-label="Folder" className="row">
      <Button small variant="quiet" onClick={() => onOpen('')}>
        Top
      </Button>
      {names.map((name, index) => (
        <Button
          key={index}
          small
          variant="quiet"
          aria-current={index === names.length - 1 ? 'location' : undefined}
          onClick={() => onOpen(names.slice(0, index + 1).join('/'))}
        >
          / {name}
        </Button>
      ))}
    </nav>
  );
}

function foldersFirst(one: VolumeFile, other: VolumeFile): number {
  if (one.kind !== other.kind) return one.kind === 'folder' ? -1 : 1;
  return one.name.localeCompare(other.name);
}
