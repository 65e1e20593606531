package daytona

import (
	"cmp"
	"os"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/pace"
)

const (
	vendor = "Daytona"

	credentialKey          = "api_key"
	credentialJWT          = "jwt_token"
	credentialOrganization = "organization_id"

	fieldEdition  = "edition"
	fieldClass    = "class"
	fieldArchive  = "archive_after_minutes"
	fieldAPI      = "api_url"
	fieldRegion   = "region"
	fieldSnapshot = "snapshot"
	fieldWorkDir  = "workdir"

	editionCloud      = "cloud"
	editionSelfHosted = "self-hosted"
	classContainer    = "container"
	classVM           = "linux-vm"

	cloudAPI       = "https://app.daytona.io/api"
	defaultWorkDir = "/home/daytona/workspace"
	// defaultPerMinute is what the smallest tier allows. Source: https://www.daytona.io/docs/en/limits, read on 2026-11-20.
	defaultPerMinute = 300
)

var configFields = []extensions.Field{
	{Name: fieldEdition, Type: extensions.FieldString, Enum: []string{editionCloud, editionSelfHosted},
		Doc: "`cloud` (the default) is the vendor's cloud; `self-hosted` is your own installation, version 0.190."},
	{Name: fieldClass, Type: extensions.FieldString, Enum: []string{classContainer, classVM},
		Doc: "`container` (the default), or `linux-vm`: virtual machines of the cloud, whose snapshots must have that class too."},
	{Name: fieldArchive, Type: extensions.FieldInt, Max: 1 << 30,
		Doc: "Minutes until a paused container's files move into the vendor's archive, outside the quota of disks; default: 7 days."},
	{Name: fieldAPI, Type: extensions.FieldString,
		Doc: "Address of the API; default: `DAYTONA_API_URL`, else `" + cloudAPI + "`. Your own installation has no default."},
	{Name: fieldRegion, Type: extensions.FieldString,
		Doc: "Region for profiles that require none; default: `DAYTONA_TARGET`, else the organization's own."},
	{Name: fieldSnapshot, Type: extensions.FieldString,
		Doc: "Snapshot for profiles that name neither a snapshot nor an image; default: the vendor's."},
	pace.Field(defaultPerMinute, ", what the vendor's smallest tier allows"),
}

var optionFields = []extensions.Field{
	{Name: fieldSnapshot, Type: extensions.FieldString, Doc: "Name or ID of the snapshot to start from."},
	{Name: fieldWorkDir, Type: extensions.FieldPath,
		Doc: "The workspace, a folder that the sandbox's user may create; default: `" + defaultWorkDir + "`."},
}

type settings struct {
	account, apiURL, region, snapshot string // "" of the last two = the vendor's choice
	cloud, vm                         bool
	archive                           int // minutes, 0 = the vendor's choice
}

func parseConfig(cfg extensions.Config) (s settings, err error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return s, err
	}
	s = settings{account: cfg.Account, cloud: isCloud(cfg.Values), vm: isVM(cfg.Values), snapshot: extensions.Text(cfg.Values, fieldSnapshot),
		region:  cmp.Or(extensions.Text(cfg.Values, fieldRegion), os.Getenv("DAYTONA_TARGET")),
		archive: int(extensions.Whole(cfg.Values[fieldArchive], 0))}
	if s.vm && !s.cloud {
		return s, extensions.Errorf(extensions.KindInvalid, "config.%s: version 0.190 of %s has containers only", fieldClass, vendor).
			WithRemedy("remove it, or use the cloud")
	}
	s.apiURL = cmp.Or(extensions.Text(cfg.Values, fieldAPI), os.Getenv("DAYTONA_API_URL"))
	if s.apiURL == "" && s.cloud {
		s.apiURL = cloudAPI
	}
	if s.apiURL == "" {
		return s, extensions.Errorf(extensions.KindInvalid, "config.%s: your installation of %s has no address", fieldAPI, vendor).
			WithRemedy("set it to the installation's address, such as http://localhost:3000/api, or set DAYTONA_API_URL")
	}
	s.apiURL = strings.TrimSuffix(s.apiURL, "/")
	return s, nil
}

func isCloud(values map[string]any) bool {
	return extensions.Text(values, fieldEdition) != editionSelfHosted
}

func isVM(values map[string]any) bool { return extensions.Text(values, fieldClass) == classVM }
