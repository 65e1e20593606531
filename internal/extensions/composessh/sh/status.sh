# Operation: observe. ids: the sandboxes asked for; '' with all=1: every one
# here.

use_root
need_tools
survey
answer_with ''
