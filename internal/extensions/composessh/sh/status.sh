# Operation: observe. ids: the requested sandboxes; '' with all=1: every one on the host.

use_root
need_tools
survey
answer_with ''
