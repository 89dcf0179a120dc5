"""Every key in one table: bindings, the help overlay and `keymap.toml` are made from it (CONTRACT 7)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from textual.binding import Binding, BindingType

WORDS: Final[dict[str, str]] = {
    "escape": "Esc",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "question_mark": "?",
    "underscore": "_",
    "asterisk": "*",
    "vertical_line": "|",
    "delete": "Del",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "comma": ",",
    "full_stop": ".",
    "minus": "-",
    "plus": "+",
    "equals_sign": "=",
}
"""Words by the name of a key in Textual; any other key is called by that name."""


class Scope(StrEnum):
    """Place where a key applies; the value heads its group in the help."""

    APP = "Always"
    WORKSPACE = "Everywhere"
    COMPOSER = "Writing"
    LIST = "Conversation list"
    QUESTION = "Approval question"
    ASK = "Questions of the agent"
    QUEUE = "Message queue"
    BLOCKS = "Blocks of the conversation"
    ROWS = "Sheets with rows"
    TYPED = "Sheets with a search line"
    TABS = "Sheets with tabs"
    PEEK = "Preview of a conversation"
    APPROVALS = "Pending approvals"
    RULES = "Permission rules"
    CONTEXT = "The context window"
    SUMMARY = "Proposed summary"
    REWIND = "Rewind"
    CHANGES = "File changes"
    HISTORY = "Prompt history"
    FIND = "Find in this conversation"
    SEARCH = "Search"
    HIT = "Search result"
    IMAGES = "Attached images"
    PASTE = "Pasted text"
    SETTINGS = "Settings"
    HELP = "Keys and commands"
    PROFILES = "Agent profiles"
    NOTES = "Notes"
    MODELS = "Models"
    TRUST = "Extensions of a folder"
    MCP = "MCP servers"
    STATISTICS = "Statistics"
    TASKS = "Task board"
    AGENTS = "Sub-agents"
    JOBS = "Background commands"
    TRACES = "Traces"
    ROUTE = "Supervisor's decision"
    TODO = "Todo list"
    SIDE = "Side question"
    REVIEW = "Review"
    READING = "Text viewer"


class Key(Struct, frozen=True):
    """One action and the keys that do it. `id` is its name in `keymap.toml`."""

    id: str
    keys: str
    action: str
    """Method of the screen or widget; empty for an action of a page, which is found by `id`."""
    meaning: str
    scope: Scope
    priority: bool = True


A, W, C, L, Q, U = Scope.APP, Scope.WORKSPACE, Scope.COMPOSER, Scope.LIST, Scope.QUESTION, Scope.QUEUE
B: Final = Scope.BLOCKS
R, T = Scope.ROWS, Scope.TYPED
KEYS: Final[tuple[Key, ...]] = (
    Key("quit", "ctrl+q", "leave", "quit", A),
    Key("interrupt", "ctrl+c", "interrupt", "copy the selection, else stop, else clear the draft; again: quit", A),
    Key("suspend", "ctrl+z", "suspend_process", "suspend to the shell", A),
    Key("stop", "escape", "stop", "close what is open, else stop the run; twice: clear the draft, or rewind", W),
    Key("new", "ctrl+n", "command('new')", "new conversation", W),
    Key("list", "ctrl+l", "list", "conversation list", W),
    Key("palette", "ctrl+p", "act('palette')", "all commands", W),
    Key("mode", "shift+tab", "act('next_mode')", "next permission mode", W),
    Key("model_before", "alt+m", "command('model -')", "go back to the model chosen before", W),
    Key("effort", "alt+t", "command('effort')", "how much the model reasons (effort)", W),
    Key("effort_lower", "alt+comma", "command('effort lower')", "less reasoning", W),
    Key("effort_higher", "alt+full_stop", "command('effort higher')", "more reasoning", W),
    Key("send_now", "ctrl+s", "send_now", "stop the run and send the draft", W),
    Key(
        "background",
        "ctrl+b",
        "command('background')",
        "send the running command to the background",
        W,
        priority=False,
    ),
    Key("shell_keys", "ctrl+right_square_bracket", "shell_keys", "type into the running shell line", W),
    Key("stash", "alt+q", "command('stash draft')", "put the draft aside; on an empty line: bring the newest back", W),
    Key("details", "ctrl+o", "view('details')", "open or close details", W),
    Key("focus_view", "alt+o", "act('focus_view')", "prompts, answers and diffs; tools share one line", W),
    Key("help", "f1", "command('help')", "show this help (also ? on an empty line)", W),
    Key("help_outside", "question_mark", "command('help')", "show this help, outside the composer", W, priority=False),
    Key("page_up", "pageup", "view('page_up')", "scroll the conversation up", W),
    Key("page_down", "pagedown", "view('page_down')", "scroll the conversation down", W),
    Key("top", "ctrl+home", "view('top')", "go to the first message", W),
    Key("bottom", "ctrl+end", "view('bottom')", "go to the newest message", W),
    Key("blocks", "alt+up", "view('blocks')", "select a block: copy, open, fork, edit and resend; again: above", W),
    Key("blocks_below", "alt+down", "view('blocks_below')", "select a block; again: the one below", W),
    Key("find", "ctrl+f", "command('find')", "find in this conversation; again: search all conversations", W),
    Key("turns", "f2", "command('turns')", "list the turns and what each did; Enter jumps to one", W),
    Key("tasks", "f3", "command('tasks')", "task board of this conversation", W),
    Key("prompt_above", "alt+pageup", "view('prompt_above')", "go to the previous prompt", W),
    Key("prompt_below", "alt+pagedown", "view('prompt_below')", "go to the next prompt", W),
    Key("todo", "ctrl+t", "act('todos')", "show or fold the todo list", W),
    Key("approvals", "alt+a", "command('approvals')", "pending approvals of all conversations", W),
    Key("agents", "alt+s", "command('agents')", "sub-agents of this conversation: open, stop, send a hint", W),
    Key("agent_next", "alt+n", "command('agents next')", "go to the next sub-agent's transcript", W),
    Key("agent_previous", "alt+p", "command('agents previous')", "go to the previous sub-agent's transcript", W),
    Key("agent_parent", "alt+u", "command('agents parent')", "return from a sub-agent to its parent", W),
    Key("pane_next", "alt+right,f6", "command('pane next')", "go to the next pane (/split adds one)", W),
    Key("pane_previous", "alt+left,shift+f6", "command('pane previous')", "go to the previous pane", W),
    Key("pane_close", "alt+w", "command('close')", "close this pane; its conversation keeps running", W),
    *(Key(f"go_{n}", f"alt+{n}", f"go({n})", f"open conversation {n} of the list", W) for n in range(1, 10)),
    Key("send", "enter", "order('send')", "send; accept a completion", C),
    Key("newline", "ctrl+j,shift+enter,alt+enter", "order('newline')", "new line; also \\ and then Enter", C),
    Key("older", "up", "order('older')", "line up; on the first line: older prompt", C),
    Key("newer", "down", "order('newer')", "line down; on the last line: newer prompt", C),
    Key("history", "ctrl+r", "order('history')", "search the prompt history", C),
    Key("complete", "tab", "order('complete')", "accept a completion; while the agent works: queue the draft", C),
    Key("steer", "alt+i", "order('steer')", "while the agent works: give the draft to the running turn", C),
    Key("paste", "ctrl+v,alt+v", "screen.act('paste')", "paste an image or text", C),
    Key("editor", "ctrl+g", "screen.act('editor')", "write in $EDITOR", C),
    Key("undo", "ctrl+underscore", "edit('undo')", "undo", C),
    Key("redo", "alt+slash", "edit('redo')", "redo", C),
    Key("line_start", "ctrl+a,home", "edit('line_start')", "start of the line", C),
    Key("line_end", "ctrl+e,end", "edit('line_end')", "end of the line; of an empty one: the newest message", C),
    Key("left", "ctrl+b", "edit('left')", "character left (in a text)", C),
    Key("word_left", "alt+b,ctrl+left", "edit('word_left')", "word left", C),
    Key("word_right", "alt+f,ctrl+right", "edit('word_right')", "word right", C),
    Key("kill_to_end", "ctrl+k", "edit('kill_to_end')", "cut to the end of the line", C),
    Key("kill_to_start", "ctrl+u", "edit('kill_to_start')", "cut to the start of the line", C),
    Key("kill_big_word", "ctrl+w", "edit('kill_big_word')", "cut back to a space", C),
    Key("kill_word_left", "alt+backspace", "edit('kill_word_left')", "cut the word before the cursor", C),
    Key("kill_word_right", "alt+d", "edit('kill_word_right')", "cut the word after the cursor", C),
    Key("yank", "ctrl+y", "edit('yank')", "insert the last cut text", C),
    Key("yank_older", "alt+y", "edit('yank_older')", "then: replace it with the cut before", C),
    Key("leave", "ctrl+d", "order('leave')", "quit (on an empty line)", C),
    Key("queue_up", "up,k", "row(-1)", "previous message; above the first: older prompts", U, priority=False),
    Key("queue_down", "down,j", "row(1)", "next message; below the last: the composer", U, priority=False),
    Key("queue_edit", "enter,e", "queue('edit')", "edit the message", U, priority=False),
    Key("queue_earlier", "shift+up,K", "queue('move', -1)", "send the message earlier", U, priority=False),
    Key("queue_later", "shift+down,J", "queue('move', 1)", "send the message later", U, priority=False),
    Key("queue_remove", "delete,d", "queue('remove')", "remove the message", U, priority=False),
    Key("queue_send", "s", "queue('send')", "stop the run and send the message now", U, priority=False),
    Key("queue_deliver", "t", "queue('deliver')", "give it to the running turn, or wait for idle", U, priority=False),
    Key("row_up", "up,k", "row(-1)", "up", L, priority=False),
    Key("row_down", "down,j", "row(1)", "down", L, priority=False),
    Key("open", "enter", "open", "open", L, priority=False),
    Key("row_page_up", "pageup", "row(-10, True)", "ten rows up", L),
    Key("row_page_down", "pagedown", "row(10, True)", "ten rows down", L),
    Key("row_first", "home,g", "row(-9999)", "first row", L, priority=False),
    Key("row_last", "end,G", "row(9999)", "last row", L, priority=False),
    Key("filter", "slash", "filter", "filter as you type; Esc shows all", L, priority=False),
    Key("peek", "p,right", "want('peek')", "preview: newest text or the question; reply or answer", L, priority=False),
    *(
        Key(f"row_answer_{n}", f"{n}", f"want('answer {n}')", f"answer its question with option {n}", L, priority=False)
        for n in range(1, 5)
    ),
    Key("beside", "vertical_line", "want('beside')", "open in another pane", L, priority=False),
    Key("pin", "t", "want('pin')", "pin to the top, or unpin", L, priority=False),
    Key("rename", "ctrl+r", "want('rename')", "rename", L, priority=False),
    Key("fork_row", "f", "want('fork')", "continue in a copy", L, priority=False),
    Key("new_worktree", "N", "want('new worktree')", "new conversation in a git worktree", L, priority=False),
    Key("fork_worktree", "F", "want('fork worktree')", "continue in a copy in a git worktree", L, priority=False),
    Key(
        "zoom",
        "z",
        "zoom",
        "list over the whole screen, with all columns and, where it is wide, a preview; again: back",
        L,
        priority=False,
    ),
    Key("mark", "space,v", "mark", "mark, to archive, delete, pin or stop several", L, priority=False),
    Key("stop_rows", "x", "want('stop')", "stop the run", L, priority=False),
    Key("archive", "a", "want('archive')", "archive", L, priority=False),
    Key("delete", "d,delete", "want('delete')", "move to the trash", L, priority=False),
    Key("restore", "u", "want('restore')", "undo the last archive or delete", L, priority=False),
    Key("archived", "A", "want('archived')", "show the archive", L, priority=False),
    Key("trash", "D", "want('trash')", "show the trash", L, priority=False),
    Key("answer_once", "y", "answer('y')", "yes, once", Q, priority=False),
    Key("answer_conversation", "s", "answer('s')", "yes, for this conversation", Q, priority=False),
    Key("answer_always", "a", "answer('a')", "yes, always (shows the rule first)", Q, priority=False),
    Key("answer_no", "n", "answer('n')", "no", Q, priority=False),
    Key("answer_edit", "e", "answer('e')", "edit a plan before you approve it", Q, priority=False),
    Key("answer_reason", "r", "answer('r')", "no, with a reason", Q, priority=False),
    *(Key(f"answer_{n}", f"{n}", f"answer('{n}')", f"give answer {n}", Q, priority=False) for n in range(1, 7)),
    Key("choice_before", "up,left", "choose(-1)", "previous answer; above the first: the queue", Q, priority=False),
    Key("choice_after", "down,right", "choose(1)", "next answer; below the last: the composer", Q, priority=False),
    Key("choice_take", "enter", "take", "give the selected answer", Q, priority=False),
    Key("request_up", "shift+up", "scroll_asked(-1)", "scroll a long request up", Q, priority=False),
    Key("request_down", "shift+down", "scroll_asked(1)", "scroll a long request down", Q, priority=False),
    Key("ask_before", "left", "ask('before')", "previous question", Scope.ASK, priority=False),
    Key("ask_after", "right", "ask('after')", "next question", Scope.ASK, priority=False),
    Key("ask_toggle", "space", "ask('toggle')", "choose the selected option, or drop it", Scope.ASK, priority=False),
    Key("ask_other", "o", "ask('o')", "answer in your own words", Scope.ASK, priority=False),
    Key("ask_send", "enter", "ask('send')", "send all answers", Scope.ASK, priority=False),
    Key("block_up", "up,k", "block('up')", "previous block", B, priority=False),
    Key("block_down", "down,j", "block('down')", "next block", B, priority=False),
    Key("block_first", "home,g", "block('first')", "first block", B, priority=False),
    Key("block_last", "end,G", "block('last')", "last block", B, priority=False),
    Key("block_prompt_up", "left_square_bracket", "block('prompt_above')", "previous prompt", B, priority=False),
    Key("block_prompt_down", "right_square_bracket", "block('prompt_below')", "next prompt", B, priority=False),
    Key("block_open", "enter,space", "block('toggle')", "open or fold", B, priority=False),
    Key("block_fold", "h,left", "block('fold')", "fold; again: fold the row of reads around it", B, priority=False),
    Key("block_copy", "c,y", "block('copy')", "copy its text, code, output or diff", B, priority=False),
    Key("block_edit", "e", "block('edit')", "edit this prompt and resend it in a copy", B, priority=False),
    Key("block_fork", "f", "block('fork')", "continue in a copy that ends here", B, priority=False),
    Key("block_file", "o", "block('file')", "open the file in $EDITOR, or the image", B, priority=False),
    Key("block_leave", "i,q,escape", "block('leave')", "return to the composer", B, priority=False),
    Key("sheet_up", "up,k", "move(-1)", "up", R, priority=False),
    Key("sheet_down", "down,j", "move(1)", "down", R, priority=False),
    Key("sheet_page_up", "pageup", "move(-10)", "ten rows up; in a long request: scroll up", R),
    Key("sheet_page_down", "pagedown", "move(10)", "ten rows down; in a long request: scroll down", R),
    Key("sheet_first", "home", "move(-100000)", "first row", R, priority=False),
    Key("sheet_last", "end", "move(100000)", "last row", R, priority=False),
    Key("sheet_take", "enter", "take", "open or select the row", R, priority=False),
    Key("sheet_close", "q", "close", "close (also Esc)", R, priority=False),
    Key("typed_up", "up,ctrl+p", "move(-1)", "up", T),
    Key("typed_down", "down,ctrl+n", "move(1)", "down", T),
    Key("typed_page_up", "pageup", "page(-1)", "page up", T),
    Key("typed_page_down", "pagedown", "page(1)", "page down", T),
    Key("tab_next", "tab,ctrl+pagedown", "tab(1)", "next tab", Scope.TABS),
    Key("tab_previous", "shift+tab,ctrl+pageup", "tab(-1)", "previous tab", Scope.TABS),
    Key("peek_up", "up", "scroll(-1)", "scroll up", Scope.PEEK),
    Key("peek_down", "down", "scroll(1)", "scroll down", Scope.PEEK),
    Key("peek_page_up", "pageup", "scroll(-10)", "ten rows up", Scope.PEEK),
    Key("peek_page_down", "pagedown", "scroll(10)", "ten rows down", Scope.PEEK),
    Key("peek_reply", "r,tab", "reply", "write a reply, or the reason for no", Scope.PEEK, priority=False),
    Key("peek_open", "o,enter", "open", "open the conversation", Scope.PEEK, priority=False),
    Key("peek_close", "left,q", "close", "close (also Esc)", Scope.PEEK, priority=False),
    Key("deny_all", "D", "deny_all", "deny all pending approvals, with a reason", Scope.APPROVALS, priority=False),
    Key("rule_new", "n", "write(True)", "add a rule", Scope.RULES),
    Key("rule_remove", "d,delete", "remove", "remove the rule", Scope.RULES, priority=False),
    Key("rule_here", "tab", "here", "add a new rule to this conversation only", Scope.RULES),
    Key("rule_everywhere", "alt+e", "everywhere", "add a new rule to all projects", Scope.RULES),
    Key("rule_move", "m", "shift", "move the rule between this project and all projects", Scope.RULES, priority=False),
    Key("rule_undo", "u", "undo", "undo the last change of a rule", Scope.RULES, priority=False),
    Key("context_compact", "c", "summarize", "summarize older messages", Scope.CONTEXT, priority=False),
    Key("context_prune", "p", "edit('prune')", "shorten old tool results", Scope.CONTEXT, priority=False),
    Key("context_images", "i", "edit('strip_images')", "remove the images", Scope.CONTEXT, priority=False),
    Key("context_part", "x", "edit('part')", "remove this part, or restore it", Scope.CONTEXT, priority=False),
    Key("context_put_back", "b", "edit('put_back')", "restore all parts", Scope.CONTEXT, priority=False),
    Key("context_undo", "u", "edit('undo')", "undo", Scope.CONTEXT, priority=False),
    Key("context_restore", "r", "edit('restore')", "restore the older messages", Scope.CONTEXT, priority=False),
    Key("context_earlier", "minus", "threshold(-1)", "lower the threshold", Scope.CONTEXT, priority=False),
    Key("context_later", "plus,equals_sign", "threshold(1)", "raise the threshold", Scope.CONTEXT, priority=False),
    Key("summary_take", "enter", "take", "use the summary in place of the older messages", Scope.SUMMARY),
    Key("summary_change", "e", "change", "edit the summary", Scope.SUMMARY),
    Key("summary_again", "r", "again", "regenerate the summary, with a hint", Scope.SUMMARY),
    Key("summary_up", "up,k", "scroll(-1)", "up", Scope.SUMMARY),
    Key("summary_down", "down,j", "scroll(1)", "down", Scope.SUMMARY),
    Key("summary_page_up", "pageup", "scroll(-20)", "page up", Scope.SUMMARY),
    Key("summary_page_down", "pagedown,space", "scroll(20)", "page down", Scope.SUMMARY),
    Key("rewind_undo", "u", "order('undo')", "undo the last rewind", Scope.REWIND),
    Key("rewind_branches", "b", "order('branches')", "show the branches", Scope.REWIND),
    Key("rewind_finish", "f", "order('finish')", "finish the interrupted restore", Scope.REWIND),
    Key("rewind_take_back", "t", "order('take_back')", "undo the interrupted restore", Scope.REWIND),
    Key("rewind_overwrite", "space", "overwrite", "overwrite a changed file, or keep it as it is", Scope.REWIND),
    Key("rewind_diff", "d", "diff", "show the diff of the file", Scope.REWIND),
    Key("rewind_summarize", "s", "summarize", "summarize the earlier messages instead", Scope.REWIND),
    Key("changes_up", "up,k", "scroll(-1)", "up", Scope.CHANGES),
    Key("changes_down", "down,j", "scroll(1)", "down", Scope.CHANGES),
    Key("changes_page_up", "pageup", "page(-1)", "page up", Scope.CHANGES),
    Key("changes_page_down", "pagedown,space", "page(1)", "page down", Scope.CHANGES),
    Key("changes_first", "home,g", "end(-1)", "first row", Scope.CHANGES),
    Key("changes_last", "end,G", "end(1)", "last row", Scope.CHANGES),
    Key("changes_before", "left_square_bracket", "change(-1)", "previous change", Scope.CHANGES),
    Key("changes_after", "right_square_bracket", "change(1)", "next change, then the next file", Scope.CHANGES),
    Key("changes_file_before", "p,shift+tab", "file(-1)", "previous file", Scope.CHANGES),
    Key("changes_file_after", "n,tab", "file(1)", "next file", Scope.CHANGES),
    Key("changes_set_before", "left,h", "set(-1)", "newer turn; after the newest: all turns", Scope.CHANGES),
    Key("changes_set_after", "right,l", "set(1)", "previous turn", Scope.CHANGES),
    Key("changes_turn", "v", "turn", "switch between side by side and one column", Scope.CHANGES),
    Key("changes_open", "enter,o", "open", "open the file in $EDITOR", Scope.CHANGES),
    Key("changes_ask", "a", "ask", "ask about the selection, or the visible change", Scope.CHANGES),
    Key("changes_copy", "c,y", "copy", "copy the change as a patch", Scope.CHANGES),
    Key("changes_again", "r", "again", "read the folder again", Scope.CHANGES),
    Key("changes_close", "q", "close", "close (also Esc)", Scope.CHANGES),
    Key("history_older", "ctrl+r", "move(1)", "older prompt", Scope.HISTORY),
    Key("history_wide", "ctrl+s", "widen", "switch between all folders and this one", Scope.HISTORY),
    Key("history_take", "tab", "take", "insert into the message (also Enter)", Scope.HISTORY),
    Key("find_newer", "shift+enter", "step(1)", "newer match", Scope.FIND),
    Key("search_here", "tab", "here", "switch between this folder and all", Scope.SEARCH),
    Key("hit_stay", "enter,i", "answer('stay')", "stay here", Scope.HIT),
    Key("hit_previous", "up,k,N,ctrl+p", "answer('previous')", "previous result", Scope.HIT),
    Key("hit_next", "down,j,n,ctrl+n", "answer('next')", "next result", Scope.HIT),
    Key("image_previous", "left,up,k", "step(-1)", "previous image", Scope.IMAGES),
    Key("image_next", "right,down,j,space,tab", "step(1)", "next image", Scope.IMAGES),
    Key("image_remove", "delete,d", "take_away", "remove from the message", Scope.IMAGES),
    Key("image_close", "enter,q", "close", "close (also Esc)", Scope.IMAGES),
    Key("paste_keep", "ctrl+s,ctrl+enter", "keep", "save the text", Scope.PASTE),
    Key("paste_editor", "ctrl+g", "outside", "edit in $EDITOR", Scope.PASTE),
    Key("paste_file", "ctrl+f", "to_file", "replace with a file", Scope.PASTE),
    Key("paste_undo", "ctrl+underscore", "undo", "undo", Scope.PASTE),
    Key("setting_all", "tab", "switch", "switch between the usual settings and all", Scope.SETTINGS),
    Key("setting_reset", "delete", "reset", "reset to the default value", Scope.SETTINGS),
    Key("help_all", "tab", "switch", "switch between these keys and all", Scope.HELP),
    Key("profile_read", "space", "", "show the whole profile", Scope.PROFILES, priority=False),
    Key("profile_edit", "e", "", "edit your profile in $EDITOR", Scope.PROFILES, priority=False),
    Key("profile_new", "n", "", "create a profile, or copy one", Scope.PROFILES, priority=False),
    Key("note_edit", "e", "", "edit the note in $EDITOR", Scope.NOTES, priority=False),
    Key("note_new", "n", "", "write your own note of today in $EDITOR", Scope.NOTES, priority=False),
    Key("note_remove", "x,delete", "", "delete the note", Scope.NOTES, priority=False),
    Key("note_undo", "u", "", "restore the note deleted last", Scope.NOTES, priority=False),
    Key("model_default", "d", "want('default')", "use it here and in new conversations", Scope.MODELS, priority=False),
    Key("model_effort", "e", "want('effort')", "use it here and choose its effort", Scope.MODELS, priority=False),
    Key("model_mark", "asterisk", "mark", "mark as a favourite, or unmark", Scope.MODELS, priority=False),
    Key("model_filter", "slash", "filter", "filter as you type; Esc shows all", Scope.MODELS, priority=False),
    Key("model_rows", "tab", "filter", "from the filter to its rows, for other keys", Scope.MODELS, priority=False),
    Key("model_refresh", "r", "refresh", "ask all providers for their lists again", Scope.MODELS, priority=False),
    Key("trust_yes", "y", "", "use all of these files", Scope.TRUST, priority=False),
    Key("trust_no", "n", "", "use none of these files", Scope.TRUST, priority=False),
    Key("trust_show", "s", "", "show the file, or its difference", Scope.TRUST, priority=False),
    Key("mcp_reconnect", "r", "", "connect to the server again", Scope.MCP, priority=False),
    Key(
        "mcp_switch",
        "space",
        "",
        "use the server in this conversation, or not",
        Scope.MCP,
        priority=False,
    ),
    Key("mcp_off", "d", "", "switch the server off for good, or on", Scope.MCP, priority=False),
    Key(
        "mcp_sandbox",
        "s",
        "",
        "run the server without a sandbox, or in one",
        Scope.MCP,
        priority=False,
    ),
    Key("mcp_forget", "f", "", "remove what the server has written", Scope.MCP, priority=False),
    Key(
        "mcp_end",
        "x,delete",
        "",
        "end the server; its next use starts it again",
        Scope.MCP,
        priority=False,
    ),
    Key("stats_next", "right,tab,l", "page_of(1)", "next page", Scope.STATISTICS, priority=False),
    Key("stats_previous", "left,h", "page_of(-1)", "previous page", Scope.STATISTICS, priority=False),
    Key("stats_range", "r", "range", "7 days, 30 days, a year, or all time", Scope.STATISTICS, priority=False),
    Key("task_status", "s", "status", "change the status of the task", Scope.TASKS, priority=False),
    Key("task_edit", "e", "edit", "edit the text of the task", Scope.TASKS, priority=False),
    Key("task_remove", "x,delete", "remove", "delete the task; its messages stay", Scope.TASKS, priority=False),
    Key("task_undo", "u", "undo", "restore the task deleted last", Scope.TASKS, priority=False),
    Key("task_filter", "slash", "filter", "filter as you type; Esc shows all", Scope.TASKS, priority=False),
    Key("task_sort", "o", "sort", "sort: in order, or newest first", Scope.TASKS, priority=False),
    Key("task_loose", "n", "loose", "show messages without a task", Scope.TASKS, priority=False),
    Key("task_track", "t", "track", "tracking of this conversation on or off", Scope.TASKS, priority=False),
    Key("task_now", "f", "now", "track the waiting messages now", Scope.TASKS, priority=False),
    Key("agent_beside", "vertical_line", "beside", "open in another pane", Scope.AGENTS, priority=False),
    Key("agent_stop", "x,delete", "stop_one", "stop the sub-agent; its results are kept", Scope.AGENTS, priority=False),
    Key("agent_stop_all", "X", "stop_all", "stop all sub-agents", Scope.AGENTS, priority=False),
    Key("agent_hint", "h", "hint", "send a hint; an ended sub-agent resumes", Scope.AGENTS, priority=False),
    Key("job_end", "x,delete", "end", "stop the command and all its processes", Scope.JOBS, priority=False),
    Key("trace_message", "m", "message", "show the message in the transcript", Scope.TRACES, priority=False),
    Key("trace_filter", "slash", "filter", "filter by kind, name or error", Scope.TRACES, priority=False),
    Key("route_start", "y,enter", "route('y')", "start the agents now", Scope.ROUTE, priority=False),
    Key("route_alone", "n", "route('n')", "let the main model answer alone", Scope.ROUTE, priority=False),
    Key("route_edit", "e", "route('e')", "edit the agents and their tasks", Scope.ROUTE, priority=False),
    Key("route_drop", "x,delete", "drop", "remove the selected agent", Scope.ROUTE, priority=False),
    Key("route_up", "up", "row(-1)", "previous agent", Scope.ROUTE, priority=False),
    Key("route_down", "down", "row(1)", "next agent; below the last: the composer", Scope.ROUTE, priority=False),
    Key("todo_up", "up,k", "row(-1)", "previous item", Scope.TODO, priority=False),
    Key("todo_down", "down,j", "row(1)", "next item; below the last: the composer", Scope.TODO, priority=False),
    Key("todo_done", "space,x", "todo('done')", "complete the item, or open it again", Scope.TODO, priority=False),
    Key("todo_edit", "enter,e", "todo('edit')", "edit the item", Scope.TODO, priority=False),
    Key("todo_drop", "delete,d", "todo('drop')", "drop the item", Scope.TODO, priority=False),
    Key("todo_add", "a", "todo('add')", "add an item", Scope.TODO, priority=False),
    Key("side_copy", "c,y", "want('copy')", "copy the answer", Scope.SIDE, priority=False),
    Key("side_more", "a", "want('more')", "ask on, with this answer in mind", Scope.SIDE, priority=False),
    Key("side_fork", "f", "want('fork')", "continue in a copy that ends with it", Scope.SIDE, priority=False),
    Key("review_open", "e", "", "open the file at the line", Scope.REVIEW, priority=False),
    Key("review_fix", "f", "", "ask for a fix of the finding", Scope.REVIEW, priority=False),
    Key("review_fix_all", "F", "", "ask for fixes of all findings", Scope.REVIEW, priority=False),
    Key("review_drop", "d,delete", "", "drop the finding", Scope.REVIEW, priority=False),
    Key("review_undo", "u", "", "restore the finding dropped last", Scope.REVIEW, priority=False),
    Key("text_up", "k", "scroll(-1)", "up", Scope.READING, priority=False),
    Key("text_down", "j", "scroll(1)", "down", Scope.READING, priority=False),
    Key("text_close", "q,question_mark,f1,enter", "close", "close (also Esc)", Scope.READING),
)
BESIDE: Final[dict[Scope, tuple[Scope, ...]]] = {
    Scope.ROWS: (
        Scope.APPROVALS,
        Scope.RULES,
        Scope.CONTEXT,
        Scope.REWIND,
        Scope.PROFILES,
        Scope.NOTES,
        Scope.MODELS,
        Scope.TRUST,
        Scope.MCP,
        Scope.STATISTICS,
        Scope.TASKS,
        Scope.AGENTS,
        Scope.JOBS,
        Scope.TRACES,
        Scope.REVIEW,
    ),
    Scope.TYPED: (Scope.HISTORY, Scope.FIND, Scope.SEARCH, Scope.SETTINGS, Scope.HELP, Scope.TASKS, Scope.MODELS),
    Scope.QUESTION: (Scope.APPROVALS, Scope.AGENTS),
    Scope.APPROVALS: (Scope.AGENTS,),
}
"""Scopes whose keys count together with those of others."""
COUNTED: Final = frozenset({
    *(f"go_{n}" for n in range(1, 10)),
    *(f"answer_{n}" for n in range(1, 7)),
    *(f"row_answer_{n}" for n in range(1, 5)),
})
"""Actions that the help names together."""
TOGETHER: Final = {
    "go_1": ("Alt+1 … Alt+9", "open conversation 1 to 9 of the list"),
    "row_answer_1": ("1 … 4", "answer its question with that option"),
    "answer_1": ("1 … 6", "give the answer with that number"),
}
"""Keys and meaning of each group of them, by the first one."""
EVERYDAY: Final = (
    *("send", "newline", "complete", "steer", "stop", "interrupt", "older", "history", "paste", "editor"),
    *("mode", "details", "blocks", "find", "background", "approvals", "list", "new", "palette", "quit"),
)
"""The twenty keys that the help shows first."""
ANSWER_KEYS: Final = (
    *("answer_once", "answer_conversation", "answer_always", "answer_no", "answer_reason", "answer_edit"),
    *(f"answer_{n}" for n in range(1, 7)),
)
"""Actions that answer a question at once."""
KEYS_BY_ID: Final[dict[str, Key]] = {key.id: key for key in KEYS}
UNBOUND: Final = "none"
"""A key that no keyboard has: takes an action its key."""


def bindings(scope: Scope, *only: str, **actions: str) -> list[BindingType]:
    """Bindings of a widget or screen of this scope: all keys, or `only` those; `actions` has its own by id."""
    return [
        Binding(
            key.keys,
            actions.get(key.id, key.action) or f"do('{key.id}')",
            key.meaning,
            show=False,
            priority=key.priority,
            id=f"{scope.name.lower()}.{key.id}",
        )
        for key in KEYS
        if key.scope is scope and (not only or key.id in only)
    ]


EVERYWHERE: Final = frozenset({"app", "workspace", "composer"})
"""Names of scopes whose keys say little of where one is."""


def keys_of(bound: Iterable[str | None]) -> list[str]:
    """Names of the keys that a widget or a sheet has of its own, by the ids of its bindings."""
    found = [one.partition(".") for one in bound if one]
    return [name for scope, _, name in found if name in KEYS_BY_ID and scope not in EVERYWHERE]


def to_textual(keymap: Mapping[str, str]) -> dict[str, str]:
    """The same keys under the binding ids that Textual knows."""
    return {f"{KEYS_BY_ID[name].scope.name.lower()}.{name}": keys for name, keys in keymap.items()}


def key_names(keys: str) -> str:
    """Keys as people write them: `Ctrl+J, Shift+Enter`; a letter alone as it is typed, so that d is not D."""
    each = map(str.strip, keys.split(","))
    return ", ".join(
        key if len(key) == 1 else "+".join(WORDS.get(part, part.capitalize()) for part in key.split("+"))
        for key in each
    )


def help_rows(keymap: Mapping[str, str], only: Container[str] = KEYS_BY_ID) -> list[tuple[Scope, str, str]]:
    """Scope, keys and meaning of every action, or of `only` these, with the user's own keys in place."""
    return [
        (key.scope, *TOGETHER.get(key.id, (key_names(keymap.get(key.id, key.keys)), key.meaning)))
        for key in KEYS
        if key.id in only and (key.id in TOGETHER or key.id not in COUNTED)
    ]
