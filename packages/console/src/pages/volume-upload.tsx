import { useRef, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { send } from '../api/client.ts';
import { refresh } from '../api/queries.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { plural } from '../components/format.ts';
import { useToasts } from '../components/toast.tsx';

/** Uploads files into the folder, one after the other. Before a file is replaced, it asks. */
export function VolumeUpload({
  base,
  folder,
  present,
}: {
  base: string;
  folder: string;
  present: readonly { name: string }[];
}) {
  const input = useRef<HTMLInputElement>(null);
  const client = useQueryClient();
  const toasts = useToasts();
  const [sending, setSending] = useState<string>();
  const [asked, setAsked] = useState<File[]>();

  const upload = async (files: File[], replace: boolean): Promise<void> => {
    try {
      for (const file of files) {
        setSending(file.name);
        await send(`${base}/files/content`, {
          method: 'PUT',
          raw: file,
          headers: { 'content-type': 'application/octet-stream' },
          query: { path: folder === '' ? file.name : `${folder}/${file.name}`, replace },
        });
      }
      toasts.done(`${plural(files.length, 'file')} uploaded`);
    } catch (error) {
      toasts.failed(error);
    } finally {
      setSending(undefined);
      await refresh(client, [base]);
    }
  };
  const choose = (files: File[]): void => {
    if (files.length === 0) return;
    if (files.some(({ name }) => present.some((file) => file.name === name))) setAsked(files);
    else void upload(files, false);
  };
  const replaced = (asked ?? []).filter(({ name }) => present.some((file) => file.name === name));
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => {
          choose([...(event.target.files ?? [])]);
          event.target.value = '';
        }}
      />
      <Button variant="primary" disabled={sending !== undefined} onClick={() => input.current?.click()}>
        {sending === undefined ? 'Upload' : `Uploading ${sending}`}
      </Button>
      <ConfirmDialog
        open={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title="Replace files?"
        lost={`What is in ${replaced.map(({ name }) => name).join(', ')} now is lost.`}
        action="Replace"
        onConfirm={() => upload(asked ?? [], true)}
      />
    </>
  );
}
