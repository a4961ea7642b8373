/**
 * One set-up at a time in one folder. The lock is a listening socket: the kernel frees it when its last holder dies,
 * however it dies, so it is never stale. Sub-processes inherit it: after `kill -9` of the set-up, the next one waits
 * until an orphaned compiler or download has ended as well.
 */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

function addressOf(root) {
  const name = `boq-setup-${process.getuid?.() ?? 0}-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`;
  // Linux has sockets without a file; elsewhere the file of a dead holder is removed below.
  return process.platform === 'linux' ? `\0${name}` : join(tmpdir(), `${name}.sock`);
}

function listen(address) {
  const held = new Set();
  const server = createServer((socket) => {
    held.add(socket.unref());
    socket.on('error', () => {});
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)));
    server.listen(address, () => {
      server.unref();
      const release = () => {
        server.close();
        for (const socket of held) socket.destroy();
      };
      resolve({ fd: server._handle?.fd, release });
    });
  });
}

function untilReleased(address) {
  return new Promise((resolve) => {
    const socket = connect(address);
    socket.on('error', (error) => {
      if (error.code === 'ECONNREFUSED' && !address.startsWith('\0')) rmSync(address, { force: true });
    });
    socket.on('close', resolve);
  });
}

/** @returns {Promise<{fd: number | undefined, release(): void}>} */
export async function acquireLock(context) {
  const address = addressOf(context.root);
  for (let waited = false; ; waited = true) {
    const lock = await listen(address);
    if (lock) return lock;
    if (!waited) context.log('another set-up is at work in this folder: waiting for it');
    await untilReleased(address);
  }
}
