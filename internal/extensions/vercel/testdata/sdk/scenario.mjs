// What a sandbox's life asks of the vendor, through the vendor's own SDK.
import { Sandbox } from '@vercel/sandbox'

const say = (what, got) => console.log(`${what}: ${JSON.stringify(got)}`)

const account = {
  token: process.env.VERCEL_TOKEN,
  teamId: process.env.VERCEL_TEAM_ID,
  projectId: process.env.VERCEL_PROJECT_ID,
  // The SDK has one address. Its dispatcher is of another undici than Node's fetch.
  fetch: (url, { dispatcher, ...opts }) => fetch(String(url).replace('https://vercel.com/api', process.env.VERCEL_API), opts),
}

const sandbox = await Sandbox.create({
  ...account,
  name: 'witness',
  persistent: false,
  timeout: 600_000,
  resources: { vcpus: 2 },
  networkPolicy: { allow: [], subnets: { allow: ['192.0.2.0/24'] } },
  tags: { 'sandboxer.id': 'sb-1', 'sandboxer.account': 'acme-web' },
  region: 'fra1',
  failoverRegions: [],
})
say('created', [sandbox.name, sandbox.status, sandbox.vcpus, sandbox.memory, sandbox.region, sandbox.persistent, sandbox.networkPolicy])

await sandbox.extendTimeout(60_000)
say('extended', sandbox.currentSession().timeout)

const found = await Sandbox.get({ ...account, name: 'witness', resume: false })
say('found', [found.status, found.tags])
for await (const one of await Sandbox.list({ ...account, tags: { 'sandboxer.account': 'acme-web' } })) say('listed', one.name)

const run = await sandbox.runCommand({ cmd: '/bin/sh', args: ['-c', 'pwd; echo $A; exit 7'], cwd: '/tmp', env: { A: 'b c' } })
say('command', [run.exitCode, await run.stdout()])
const root = await sandbox.runCommand({ cmd: 'id', args: ['-un'], sudo: true })
say('sudo', root.exitCode)

await sandbox.writeFiles([{ path: '/tmp/work/a.txt', content: Buffer.from('some text'), mode: 0o755 }])
say('read', String(await sandbox.readFileToBuffer({ path: '/tmp/work/a.txt' })))
say('no file', await sandbox.readFileToBuffer({ path: '/tmp/none' }))

await sandbox.update({ ports: [3000] })
say('ports', sandbox.routes.map((r) => r.port))

const snapshot = await sandbox.snapshot({ expiration: 86_400_000 })
say('snapshot', [snapshot.status, snapshot.expiresAt !== undefined])
await sandbox.delete()

const again = await Sandbox.create({ ...account, name: 'again', persistent: false, source: { type: 'snapshot', snapshotId: snapshot.snapshotId } })
say('restored', String(await again.readFileToBuffer({ path: '/tmp/work/a.txt' })))
await again.stop()
say('stopped', again.status)
await again.delete()
await snapshot.delete()
say('deleted', snapshot.status)
