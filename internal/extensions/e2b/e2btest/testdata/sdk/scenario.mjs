// What a sandbox's life asks of the vendor, through the vendor's own SDK.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { CommandExitError, Sandbox, Template } from 'e2b'

const say = (what, got) => console.log(`${what}: ${JSON.stringify(got)}`)

const sandbox = await Sandbox.create('base', {
  metadata: { 'sandboxer.id': 'sb-1', 'sandboxer.account': 'acme/web' },
  timeoutMs: 60_000,
  secure: true,
  allowInternetAccess: false,
  network: { allowPublicTraffic: false },
})

await sandbox.setTimeout(600_000)

const page = await Sandbox.list({ query: { metadata: { 'sandboxer.id': 'sb-1' } } }).nextItems()
say('listed', page.map((s) => [s.state, s.metadata, s.cpuCount, s.memoryMB]))

try {
  await sandbox.commands.run('pwd; echo $A; exit 7', { cwd: '/tmp', envs: { A: 'b c' } })
} catch (e) {
  if (!(e instanceof CommandExitError)) throw e
  say('command', [e.exitCode, e.stdout, e.stderr])
}

const reading = await sandbox.commands.run('cat', { background: true, stdin: true })
await sandbox.commands.sendStdin(reading.pid, 'from stdin')
await sandbox.commands.closeStdin(reading.pid)
say('stdin', (await reading.wait()).stdout)

await sandbox.files.write('work/a.txt', 'some text')
say('read', await sandbox.files.read('work/a.txt'))
say('listed files', (await sandbox.files.list('work')).map((f) => [f.name, f.type, f.path, f.size]))

await sandbox.pause()
say('paused', (await sandbox.getInfo()).state)
const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 600_000 })
say('connected', (await again.files.read('work/a.txt')))

const snapshot = await again.createSnapshot()
const restored = await Sandbox.create(snapshot.snapshotId, { timeoutMs: 60_000, secure: true })
say('restored', await restored.files.read('work/a.txt'))
await restored.kill()
say('snapshot deleted', await Sandbox.deleteSnapshot(snapshot.snapshotId))
say('killed', await again.kill())
say('killed again', await again.kill())

const folder = mkdtempSync(join(tmpdir(), 'e2b-sdk-'))
try {
  writeFileSync(join(folder, 'a.txt'), 'some text')
  const template = Template({ fileContextPath: folder })
    .fromImage('registry.example/alpine:3.20', { username: 'me', password: 'secret' })
    .setEnvs({ A: 'b c' })
    .setWorkdir('/opt')
    .copy('a.txt', 'it/a.txt')
    .runCmd('cat it/a.txt >made')
  await Template.build(template, 'witness', { cpuCount: 2, memoryMB: 1024 })
} finally {
  rmSync(folder, { recursive: true })
}
const built = await Sandbox.create('witness', { timeoutMs: 60_000, secure: true })
say('built', [await built.files.read('/opt/made'), (await built.commands.run('echo $A')).stdout])
await built.kill()
