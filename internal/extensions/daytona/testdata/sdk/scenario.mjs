// What a sandbox's life asks of the vendor, through the vendor's own SDK.
import { Daytona } from '@daytona/sdk'

const say = (what, got) => console.log(`${what}: ${JSON.stringify(got)}`)

const daytona = new Daytona()
const sandbox = await daytona.create({
  name: 'witness',
  labels: { 'sandboxer.id': 'sb-1', 'sandboxer.account': 'acme/web' },
  public: false,
  networkAllowList: '192.0.2.0/24',
  autoStopInterval: 0,
  ttlMinutes: 10,
})
say('created', [sandbox.name, sandbox.state, sandbox.target, sandbox.cpu, sandbox.memory])

await sandbox.setTtl(30)

const found = await daytona.get('witness')
say('found', [found.state, found.labels])
for await (const one of daytona.list({ labels: { 'sandboxer.account': 'acme/web' } })) say('listed', one.name)

const run = await sandbox.process.executeCommand('pwd; echo $A; exit 7', '/tmp', { A: 'b c' })
say('command', [run.exitCode, run.result])

await sandbox.fs.uploadFile(Buffer.from('some text'), '/tmp/a.txt')
say('read', (await sandbox.process.executeCommand('cat /tmp/a.txt')).result)

say('preview', Object.keys(await sandbox.getPreviewLink(3000)).sort())

await sandbox.stop()
await sandbox.createSnapshot('witness-kept')
const kept = await daytona.snapshot.get('witness-kept')
say('snapshot', [kept.name, kept.state])
await sandbox.start()
say('resumed', sandbox.state)

const restored = await daytona.create({ name: 'witness-restored', snapshot: 'witness-kept', public: false, autoStopInterval: 0, ttlMinutes: 10 })
say('restored', [restored.state, (await restored.process.executeCommand('cat /tmp/a.txt')).result])
await restored.delete(60, true)
await daytona.snapshot.delete(kept)

const machine = await daytona.create({ name: 'witness-vm', snapshot: 'daytona-vm-small', public: false, autoStopInterval: 0, ttlMinutes: 10 })
await machine.pause()
say('paused', machine.state)
await machine.start()
say('goes on', machine.state)
await machine.delete(60, true)

await sandbox.delete(60, true)
