package provider

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// EphemeralResources implements provider.ProviderWithEphemeralResources.
func (p *Provider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &connectionResource{} }}
}

// connectionResource is the way into a sandbox for one run. Its forwards live in this process until they are
// closed, so nothing has to be renewed.
type connectionResource struct{ withEngine }

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*connectionResource)(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*connectionResource)(nil)
)

type connectionModel struct {
	SandboxID types.String            `tfsdk:"sandbox_id"`
	Ports     map[string]portModel    `tfsdk:"ports"`
	URLPorts  map[string]types.Number `tfsdk:"url_ports"`

	SSH       types.String `tfsdk:"ssh"`
	WorkDir   types.String `tfsdk:"work_dir"`
	RemoteDir types.String `tfsdk:"remote_dir"`
	Addresses types.Map    `tfsdk:"addresses"`
	URLs      types.Map    `tfsdk:"urls"`
}

type portModel struct {
	Port      types.Number `tfsdk:"port"`
	Service   types.String `tfsdk:"service"`
	LocalPort types.Number `tfsdk:"local_port"`
}

type urlModel struct {
	Address   types.String `tfsdk:"address"`
	Header    types.String `tfsdk:"header_name"`
	Value     types.String `tfsdk:"header_value"`
	ExpiresAt types.String `tfsdk:"expires_at"`
}

var urlTypes = types.ObjectType{AttrTypes: map[string]attr.Type{"address": types.StringType, "header_name": types.StringType,
	"header_value": types.StringType, "expires_at": types.StringType}}

// Metadata implements ephemeral.EphemeralResource.
func (r *connectionResource) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_connection"
}

// Configure implements ephemeral.EphemeralResourceWithConfigure.
func (r *connectionResource) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	r.cfg = takeConfigured(req.ProviderData, &resp.Diagnostics)
}

// Schema implements ephemeral.EphemeralResource.
func (r *connectionResource) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	port := func(doc string) schema.NumberAttribute {
		return schema.NumberAttribute{Optional: true, Validators: []validator.Number{wholeNumber{1, 65535}}, MarkdownDescription: doc}
	}
	inside := port("Port inside.")
	inside.Optional, inside.Required = false, true
	computed := func(doc string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: doc}
	}
	secret := computed("Value of that header.")
	secret.Sensitive = true
	resp.Schema = schema.Schema{
		MarkdownDescription: "Connects this run to a sandbox. It forwards ports to this machine, even if the sandbox's network is denied, " +
			"and returns URLs where the place has them. Neither plan nor state stores any of it.\n\nTerraform opens the connection in plan " +
			"and apply as soon as `sandbox_id` is known, and closes it when nothing uses it any more. During a destroy, an unreachable " +
			"sandbox only gives a warning, and the values are null.",
		Attributes: map[string]schema.Attribute{
			"sandbox_id": schema.StringAttribute{Required: true, Validators: []validator.String{sandboxID()},
				MarkdownDescription: "ID of the sandbox."},
			"ports": schema.MapNestedAttribute{Optional: true, MarkdownDescription: "Ports to forward to this machine, each under a name that " +
				"you choose.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"port": inside,
					"service": schema.StringAttribute{Optional: true, Validators: []validator.String{plainText("a service")},
						MarkdownDescription: "Service of a Compose stack. Default: the profile's."},
					"local_port": port("Port on this machine. Default: a free one."),
				}}},
			"url_ports": schema.MapAttribute{ElementType: types.NumberType, Optional: true,
				Validators:          []validator.Map{eachNumber(wholeNumber{1, 65535})},
				MarkdownDescription: "Ports to get a URL for, each under a name that you choose. Not every place has URLs."},
			"ssh":        computed("Destination for `ssh`. Null if there is none."),
			"work_dir":   computed("Path of the workspace inside."),
			"remote_dir": computed("Path of the workspace on its host. Null if there is none."),
			"addresses": schema.MapAttribute{ElementType: types.StringType, Computed: true,
				MarkdownDescription: "Addresses on this machine of `ports`, such as `127.0.0.1:40123`, by their names."},
			"urls": schema.MapNestedAttribute{Computed: true, MarkdownDescription: "URLs of `url_ports`, by their names.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"address":      computed("The URL."),
					"header_name":  computed("Header that requests must carry. Null if there is none."),
					"header_value": secret,
					"expires_at":   computed("Time when the URL expires, RFC 3339. Null if it lasts as long as the sandbox."),
				}}},
		},
	}
}

// Open implements ephemeral.EphemeralResource.
func (r *connectionResource) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m connectionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	e := r.must(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	c, err := r.connect(ctx, e, &m, &resp.Diagnostics)
	if err != nil {
		what := "No connection to sandbox " + m.SandboxID.ValueString()
		err = errors.Join(err, c.close())
		if !r.cfg.run().destroys {
			addError(ctx, &resp.Diagnostics, what, err)
			return
		}
		addWarning(ctx, &resp.Diagnostics, what, err)
		m.nothing()
		resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
		return
	}
	key := rand.Text()
	r.cfg.connections.Store(key, c)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, keyConnection, []byte(`"`+key+`"`))...)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

// keyConnection is the key of an open connection in the private data of its ephemeral resource.
const keyConnection = "connection"

func (m *connectionModel) nothing() {
	m.SSH, m.WorkDir, m.RemoteDir = types.StringNull(), types.StringNull(), types.StringNull()
	m.Addresses, m.URLs = types.MapNull(types.StringType), types.MapNull(urlTypes)
}

// connect opens all that m asks for and fills it in. It returns what is open even with an error.
func (r *connectionResource) connect(ctx context.Context, e *engine.Engine, m *connectionModel,
	diags *diag.Diagnostics) (*connection, error) {
	c := &connection{}
	rec, err := receiptBy(ctx, e, m.SandboxID, r.cfg.account)
	if err != nil {
		return c, err
	}
	sb, err := e.Get(ctx, rec)
	if err == nil && sb.State != stateReady {
		err = extensions.Errorf(extensions.KindConflict, "sandbox %s is %s", sb.ID, sb.State).
			WithRemedy("connect to a ready sandbox")
	}
	if err != nil {
		return c, err
	}
	m.SSH, m.WorkDir, m.RemoteDir = optional(sb.Reach.SSH), optional(sb.Reach.WorkDir), optional(sb.Reach.RemoteDir)
	addresses, urls := map[string]string{}, map[string]urlModel{}
	for name, p := range m.Ports {
		dial, err := e.Forward(ctx, sb.Receipt, p.Service.ValueString(), int(int64Of(p.Port)))
		if err == nil {
			addresses[name], err = c.forward(ctx, dial, int(int64Of(p.LocalPort)))
		}
		if err != nil {
			return c, err
		}
	}
	for name, p := range m.URLPorts {
		u, err := e.URL(ctx, sb.Receipt, int(int64Of(p)))
		if err != nil {
			return c, err
		}
		urls[name] = urlModel{Address: optional(u.Address), Header: optional(u.Header.Name), Value: optional(u.Header.Value.Reveal()),
			ExpiresAt: stamp(u.ExpiresAt)}
	}
	var ds diag.Diagnostics
	m.Addresses, ds = types.MapValueFrom(ctx, types.StringType, addresses)
	diags.Append(ds...)
	m.URLs, ds = types.MapValueFrom(ctx, urlTypes, urls)
	diags.Append(ds...)
	return c, nil
}

// Close implements ephemeral.EphemeralResourceWithClose.
func (r *connectionResource) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	raw, diags := req.Private.GetKey(ctx, keyConnection)
	resp.Diagnostics.Append(diags...)
	if len(raw) < 2 || r.cfg == nil {
		return
	}
	if c, open := r.cfg.connections.LoadAndDelete(string(raw[1 : len(raw)-1])); open {
		if err := c.(*connection).close(); err != nil {
			addWarning(ctx, &resp.Diagnostics, "A forwarded port was not closed", err)
		}
	}
}

// connection is what one open ephemeral resource holds.
type connection struct {
	end     []context.CancelFunc
	serving sync.WaitGroup
	mu      sync.Mutex
	failed  error
}

// forward opens a port here. It outlives ctx, which is that of the call that opens it.
func (c *connection) forward(ctx context.Context, dial engine.Dialer, port int) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return "", extensions.Errorf(extensions.KindConflict, "cannot listen on port %d here: %w", port, err).
			WithRemedy("choose another local_port, or leave it out")
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.end = append(c.end, cancel)
	accept := func() (io.ReadWriteCloser, error) { return l.Accept() }
	c.serving.Go(func() {
		err := dial.Serve(ctx, accept, func() { _ = l.Close() }, func(_ io.ReadWriteCloser, err error) {
			tflog.Warn(ctx, "a connection into the sandbox failed", map[string]any{"error": err.Error()})
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = errors.Join(c.failed, err)
	})
	return l.Addr().String(), nil
}

// close ends the forwards and waits for them.
func (c *connection) close() error {
	for _, end := range c.end {
		end()
	}
	c.serving.Wait()
	return c.failed
}
