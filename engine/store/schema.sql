PRAGMA application_id = 1346915928;

CREATE TABLE instances (
        id TEXT PRIMARY KEY, pid INTEGER NOT NULL, boot_id TEXT NOT NULL, started_at REAL NOT NULL);

CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        owner_instance TEXT REFERENCES instances ON DELETE SET NULL,
        kind TEXT NOT NULL DEFAULT 'user' CHECK (kind IN ('user', 'subagent')),
        user_initiated INTEGER NOT NULL DEFAULT 1 CHECK (user_initiated IN (0, 1)),
        parent_id TEXT REFERENCES conversations ON DELETE CASCADE,
        spawn_mode TEXT CHECK (spawn_mode IN ('fan_in', 'background')),
        spawn_tool_use_id TEXT,
        slug TEXT UNIQUE,
        title TEXT NOT NULL DEFAULT '',
        cwd TEXT NOT NULL,
        model TEXT NOT NULL,
        profile TEXT NOT NULL DEFAULT '',
        permission_mode TEXT NOT NULL DEFAULT 'ask',
        system_prompt_static TEXT NOT NULL DEFAULT '',
        append_system_prompt TEXT NOT NULL DEFAULT '',
        parent_context TEXT,
        state TEXT NOT NULL CHECK (state IN ('idle', 'awaiting_llm', 'tool_executing', 'awaiting_approval',
            'awaiting_subagents', 'cancelling', 'compacting', 'error', 'completed', 'failed')),
        state_json TEXT NOT NULL,
        gen INTEGER NOT NULL,
        turn_limit INTEGER,
        max_iterations INTEGER,
        deadline_at REAL,
        priority TEXT,
        context_window INTEGER NOT NULL DEFAULT 0,
        context_tokens INTEGER NOT NULL DEFAULT 0,
        context_estimated INTEGER NOT NULL DEFAULT 0 CHECK (context_estimated IN (0, 1)),
        last_usage_json TEXT,
        totals_json TEXT NOT NULL DEFAULT '{}',
        summary TEXT NOT NULL DEFAULT '',
        context_start_seq INTEGER NOT NULL DEFAULT 0,
        compaction_count INTEGER NOT NULL DEFAULT 0,
        flush_compaction_count INTEGER NOT NULL DEFAULT -1,
        disable_task_tracking INTEGER NOT NULL DEFAULT 0 CHECK (disable_task_tracking IN (0, 1)),
        supervisor INTEGER NOT NULL DEFAULT 0 CHECK (supervisor IN (0, 1)),
        auto_wake INTEGER NOT NULL DEFAULT 1 CHECK (auto_wake IN (0, 1)),
        injection_action TEXT,
        draft TEXT NOT NULL DEFAULT '',
        scroll_seq INTEGER NOT NULL DEFAULT 0,
        unread INTEGER NOT NULL DEFAULT 0 CHECK (unread IN (0, 1)),
        result_status TEXT CHECK (result_status IN ('success', 'failure', 'cancelled', 'timeout')),
        result_text TEXT,
        result_error TEXT,
        archived_at REAL,
        deleted_at REAL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL, pinned_at REAL, title_by TEXT NOT NULL DEFAULT '' CHECK (title_by IN ('', 'model', 'user')), context_omitted_json TEXT NOT NULL DEFAULT '[]', context_earlier_json TEXT NOT NULL DEFAULT '[]', compact_percent INTEGER NOT NULL DEFAULT 0, branch_of TEXT REFERENCES conversations ON DELETE SET NULL, branch_seq INTEGER NOT NULL DEFAULT 0, superseded_by TEXT REFERENCES conversations ON DELETE SET NULL, partial TEXT, agent_task TEXT, agent_ordinal INTEGER, agent_timeout REAL, sandbox TEXT NOT NULL DEFAULT 'workspace' CHECK (sandbox IN ('off', 'workspace', 'read-only')), sandbox_required INTEGER NOT NULL DEFAULT 0 CHECK (sandbox_required IN (0, 1)), effort TEXT NOT NULL DEFAULT 'default' CHECK (effort IN ('default', 'off', 'low', 'medium', 'high', 'max')), track_tasks INTEGER NOT NULL DEFAULT 0 CHECK (track_tasks IN (0, 1)), todos_json TEXT NOT NULL DEFAULT '', plan_text TEXT NOT NULL DEFAULT '', plan_at INTEGER NOT NULL DEFAULT 0, tracking_problem TEXT NOT NULL DEFAULT '', mcp_off_json TEXT NOT NULL DEFAULT '', mcp_loaded_json TEXT NOT NULL DEFAULT '');

CREATE INDEX conversations_listed ON conversations (kind, archived_at, updated_at);

CREATE INDEX conversations_owned ON conversations (owner_instance);

CREATE INDEX conversations_parent ON conversations (parent_id);

CREATE TRIGGER conversations_cwd_stays BEFORE UPDATE OF cwd ON conversations WHEN NEW.cwd IS NOT OLD.cwd
        BEGIN SELECT RAISE(ABORT, 'the working directory of a conversation never changes'); END;

CREATE TABLE turns (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        turn_number INTEGER NOT NULL,
        started_at REAL NOT NULL,
        ended_at REAL,
        summary TEXT,
        UNIQUE (conversation_id, turn_number));

CREATE TABLE messages (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        turn_id TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        message_number INTEGER NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
        origin TEXT NOT NULL CHECK (origin IN ('human', 'llm', 'tool', 'completion', 'subagent', 'notice')),
        content_json TEXT NOT NULL,
        text TEXT NOT NULL,
        original_len INTEGER,
        silent INTEGER NOT NULL DEFAULT 0 CHECK (silent IN (0, 1)),
        run_id TEXT REFERENCES runs ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
        agent_id TEXT,
        model TEXT NOT NULL DEFAULT '',
        usage_json TEXT,
        cost_usd REAL,
        duration_ms INTEGER NOT NULL DEFAULT 0,
        flags_json TEXT,
        metadata_json TEXT,
        tracked_task_id TEXT REFERENCES tracked_tasks ON DELETE SET NULL,
        task_process_status TEXT
            CHECK (task_process_status IN ('pending', 'running', 'success', 'failed', 'disabled')),
        created_at REAL NOT NULL,
        UNIQUE (conversation_id, seq));

CREATE INDEX messages_turn ON messages (turn_id);

CREATE INDEX messages_run ON messages (run_id);

CREATE INDEX messages_task ON messages (tracked_task_id) WHERE tracked_task_id IS NOT NULL;

CREATE TABLE tool_calls (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        assistant_message_id TEXT NOT NULL REFERENCES messages ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
        run_id TEXT,
        tool_use_id TEXT NOT NULL,
        ordinal INTEGER NOT NULL,
        name TEXT NOT NULL,
        input_json TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('queued', 'awaiting_approval', 'running', 'success', 'error',
            'cancelled', 'skipped', 'interrupted')),
        output_text TEXT NOT NULL DEFAULT '',
        output_json TEXT NOT NULL DEFAULT '',
        display_json TEXT NOT NULL DEFAULT '',
        is_error INTEGER NOT NULL DEFAULT 0 CHECK (is_error IN (0, 1)),
        truncated INTEGER NOT NULL DEFAULT 0 CHECK (truncated IN (0, 1)),
        pid INTEGER,
        pgid INTEGER,
        proc_start INTEGER,
        started_at REAL,
        ended_at REAL,
        duration_ms INTEGER NOT NULL DEFAULT 0, output_bytes INTEGER
        GENERATED ALWAYS AS (length(CAST(output_text AS BLOB))) VIRTUAL,
        UNIQUE (conversation_id, tool_use_id));

CREATE INDEX tool_calls_message ON tool_calls (assistant_message_id, ordinal);

CREATE INDEX tool_calls_open ON tool_calls (conversation_id)
        WHERE status IN ('queued', 'awaiting_approval', 'running');

CREATE TABLE attachments (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        sha256 TEXT NOT NULL,
        path TEXT NOT NULL,
        media_type TEXT NOT NULL,
        width INTEGER NOT NULL,
        height INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        orig_width INTEGER NOT NULL,
        orig_height INTEGER NOT NULL,
        orig_bytes INTEGER NOT NULL,
        created_at REAL NOT NULL,
        UNIQUE (conversation_id, sha256));

CREATE INDEX attachments_file ON attachments (sha256);

CREATE TABLE queued_messages (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        ord INTEGER NOT NULL,
        content_json TEXT NOT NULL,
        created_at REAL NOT NULL, delivery TEXT NOT NULL DEFAULT 'idle',
        UNIQUE (conversation_id, ord));

CREATE TABLE inbox (
        id INTEGER PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        type TEXT NOT NULL CHECK (type IN ('tool_result', 'user', 'completion')),
        content_json TEXT NOT NULL,
        sender_id TEXT,
        tool_use_id TEXT,
        created_at REAL NOT NULL,
        consumed_at REAL, quiet INTEGER NOT NULL DEFAULT 0 CHECK (quiet IN (0, 1)));

CREATE INDEX inbox_waiting ON inbox (conversation_id) WHERE consumed_at IS NULL;

CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        turn_id TEXT REFERENCES turns ON DELETE CASCADE,
        trigger_message_id TEXT,
        parent_run_id TEXT,
        agent_id TEXT,
        type TEXT,
        prompt TEXT,
        context_json TEXT,
        priority TEXT NOT NULL DEFAULT 'normal' CHECK (priority IN ('low', 'normal', 'high', 'critical')),
        timeout_ms INTEGER NOT NULL DEFAULT 300000,
        strategy TEXT NOT NULL DEFAULT 'single'
            CHECK (strategy IN ('single', 'parallel', 'sequential', 'delegate')),
        routing_json TEXT,
        status TEXT NOT NULL
            CHECK (status IN ('running', 'success', 'failure', 'cancelled', 'timeout', 'interrupted')),
        output TEXT,
        error TEXT NOT NULL DEFAULT '',
        error_code TEXT NOT NULL DEFAULT '',
        recoverable INTEGER NOT NULL DEFAULT 0 CHECK (recoverable IN (0, 1)),
        artifacts_json TEXT,
        usage_json TEXT,
        model_usage_json TEXT,
        cost_usd REAL,
        iterations INTEGER NOT NULL DEFAULT 0,
        retries INTEGER NOT NULL DEFAULT 0,
        started_at REAL NOT NULL,
        ended_at REAL,
        duration_ms INTEGER);

CREATE UNIQUE INDEX one_active ON runs (conversation_id) WHERE status = 'running';

CREATE INDEX runs_conversation ON runs (conversation_id);

CREATE INDEX runs_turn ON runs (turn_id);

CREATE TABLE traces (
        id TEXT PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE REFERENCES runs ON DELETE CASCADE,
        conversation_id TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('running', 'completed', 'error', 'cancelled')),
        input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0,
        cost_usd REAL,
        started_at REAL NOT NULL,
        ended_at REAL);

CREATE INDEX traces_conversation ON traces (conversation_id);

CREATE TABLE tracked_tasks (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        ord INTEGER NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'success', 'failed')),
        is_planning INTEGER NOT NULL DEFAULT 0 CHECK (is_planning IN (0, 1)),
        data_json TEXT NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        UNIQUE (conversation_id, ord),
        CHECK (is_planning = 0 OR ord = 0));

CREATE UNIQUE INDEX one_planning ON tracked_tasks (conversation_id) WHERE is_planning = 1;

CREATE TABLE memory_docs (path TEXT PRIMARY KEY, scope TEXT NOT NULL, updated_at REAL NOT NULL, size INTEGER NOT NULL DEFAULT -1);

CREATE VIRTUAL TABLE memory_fts USING fts5 (path, body);

CREATE TABLE profiles (name TEXT PRIMARY KEY, json TEXT NOT NULL);

CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE search_rows (
        id INTEGER PRIMARY KEY,
        source TEXT NOT NULL UNIQUE,
        conversation_id TEXT NOT NULL,
        speaker TEXT NOT NULL CHECK (speaker IN ('user', 'assistant', 'tool')),
        created_at REAL NOT NULL);

CREATE INDEX search_rows_time ON search_rows (created_at);

CREATE VIEW search_texts AS SELECT r.id AS id, CASE r.speaker
        WHEN 'tool' THEN (SELECT substr(COALESCE(CASE WHEN json_valid(t.input_json) THEN (SELECT group_concat(atom, char(10)) FROM json_tree(t.input_json) WHERE type = 'text') ELSE t.input_json END, '') || char(10) || t.output_text, 1, 200000) FROM tool_calls AS t WHERE t.id = r.source)
        ELSE (SELECT substr(m.text, 1, 200000) FROM messages AS m WHERE m.id = r.source) END AS text
        FROM search_rows AS r;

CREATE VIRTUAL TABLE search_index USING fts5 (
        text, content = 'search_texts', content_rowid = 'id', columnsize = 0, detail = none, tokenize = 'trigram');

CREATE TABLE search_backlog (below INTEGER NOT NULL, total INTEGER NOT NULL);

CREATE TRIGGER search_message_added AFTER INSERT ON messages WHEN NEW.silent = 0 AND NEW.role <> 'system' AND NEW.text <> '' BEGIN INSERT INTO search_rows (id, source, conversation_id, speaker, created_at)
            SELECT MAX(COALESCE((SELECT id FROM search_rows ORDER BY id DESC LIMIT 1), 0), 199999999) + 1,
            NEW.id, NEW.conversation_id, NEW.role, NEW.created_at WHERE NEW.silent = 0 AND NEW.role <> 'system' AND NEW.text <> '';
        INSERT INTO search_index (rowid, text) SELECT id, substr(NEW.text, 1, 200000) FROM search_rows WHERE source = NEW.id; END;

CREATE TRIGGER search_message_removed AFTER DELETE ON messages BEGIN INSERT INTO search_index (search_index, rowid, text)
            SELECT 'delete', id, substr(OLD.text, 1, 200000) FROM search_rows WHERE source = OLD.id;
        DELETE FROM search_rows WHERE source = OLD.id; END;

CREATE TRIGGER search_message_changed AFTER UPDATE OF text, silent, role ON messages
        BEGIN INSERT INTO search_index (search_index, rowid, text)
            SELECT 'delete', id, substr(OLD.text, 1, 200000) FROM search_rows WHERE source = OLD.id;
        DELETE FROM search_rows WHERE source = OLD.id; INSERT INTO search_rows (id, source, conversation_id, speaker, created_at)
            SELECT MAX(COALESCE((SELECT id FROM search_rows ORDER BY id DESC LIMIT 1), 0), 199999999) + 1,
            NEW.id, NEW.conversation_id, NEW.role, NEW.created_at WHERE NEW.silent = 0 AND NEW.role <> 'system' AND NEW.text <> '';
        INSERT INTO search_index (rowid, text) SELECT id, substr(NEW.text, 1, 200000) FROM search_rows WHERE source = NEW.id; END;

CREATE TRIGGER search_call_added AFTER INSERT ON tool_calls WHEN NEW.status IN ('success', 'error', 'cancelled', 'skipped', 'interrupted') BEGIN INSERT INTO search_rows (id, source, conversation_id, speaker, created_at)
            SELECT MAX(COALESCE((SELECT id FROM search_rows ORDER BY id DESC LIMIT 1), 0), 199999999) + 1,
            NEW.id, NEW.conversation_id, 'tool', COALESCE(NEW.ended_at, NEW.started_at, 0) WHERE NEW.status IN ('success', 'error', 'cancelled', 'skipped', 'interrupted');
        INSERT INTO search_index (rowid, text) SELECT id, substr(COALESCE(CASE WHEN json_valid(NEW.input_json) THEN (SELECT group_concat(atom, char(10)) FROM json_tree(NEW.input_json) WHERE type = 'text') ELSE NEW.input_json END, '') || char(10) || NEW.output_text, 1, 200000) FROM search_rows WHERE source = NEW.id; END;

CREATE TRIGGER search_call_removed AFTER DELETE ON tool_calls BEGIN INSERT INTO search_index (search_index, rowid, text)
            SELECT 'delete', id, substr(COALESCE(CASE WHEN json_valid(OLD.input_json) THEN (SELECT group_concat(atom, char(10)) FROM json_tree(OLD.input_json) WHERE type = 'text') ELSE OLD.input_json END, '') || char(10) || OLD.output_text, 1, 200000) FROM search_rows WHERE source = OLD.id;
        DELETE FROM search_rows WHERE source = OLD.id; END;

CREATE TRIGGER search_call_changed AFTER UPDATE OF status, input_json, output_text ON tool_calls
        WHEN OLD.status IN ('success', 'error', 'cancelled', 'skipped', 'interrupted') OR NEW.status IN ('success', 'error', 'cancelled', 'skipped', 'interrupted') BEGIN INSERT INTO search_index (search_index, rowid, text)
            SELECT 'delete', id, substr(COALESCE(CASE WHEN json_valid(OLD.input_json) THEN (SELECT group_concat(atom, char(10)) FROM json_tree(OLD.input_json) WHERE type = 'text') ELSE OLD.input_json END, '') || char(10) || OLD.output_text, 1, 200000) FROM search_rows WHERE source = OLD.id;
        DELETE FROM search_rows WHERE source = OLD.id; INSERT INTO search_rows (id, source, conversation_id, speaker, created_at)
            SELECT MAX(COALESCE((SELECT id FROM search_rows ORDER BY id DESC LIMIT 1), 0), 199999999) + 1,
            NEW.id, NEW.conversation_id, 'tool', COALESCE(NEW.ended_at, NEW.started_at, 0) WHERE NEW.status IN ('success', 'error', 'cancelled', 'skipped', 'interrupted');
        INSERT INTO search_index (rowid, text) SELECT id, substr(COALESCE(CASE WHEN json_valid(NEW.input_json) THEN (SELECT group_concat(atom, char(10)) FROM json_tree(NEW.input_json) WHERE type = 'text') ELSE NEW.input_json END, '') || char(10) || NEW.output_text, 1, 200000) FROM search_rows WHERE source = NEW.id; END;

CREATE TABLE file_steps (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        kind TEXT NOT NULL CHECK (kind IN ('turn', 'restore', 'branch')),
        state TEXT NOT NULL CHECK (state IN ('open', 'restoring', 'done')),
        seq INTEGER NOT NULL,
        folder BLOB NOT NULL,
        look TEXT NOT NULL,
        began REAL NOT NULL,
        changes BLOB NOT NULL,
        coverage BLOB NOT NULL,
        undone_from TEXT NOT NULL DEFAULT '',
        target_seq INTEGER NOT NULL DEFAULT 0);

CREATE INDEX file_steps_conversation ON file_steps (conversation_id, began);

CREATE INDEX file_steps_unfinished ON file_steps (state) WHERE state <> 'done';

CREATE INDEX conversations_branch ON conversations (branch_of) WHERE branch_of IS NOT NULL;

CREATE INDEX conversations_superseded ON conversations (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE INDEX conversations_partial ON conversations (partial) WHERE partial IS NOT NULL;

CREATE TABLE compactions (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        at REAL NOT NULL,
        cause TEXT NOT NULL CHECK (cause IN ('asked', 'full', 'overflow', 'rested', 'long_results')),
        kind TEXT NOT NULL CHECK (kind IN ('summary', 'shortened', 'restored', 'none')),
        message_count INTEGER NOT NULL,
        first_seq INTEGER NOT NULL,
        start_seq INTEGER NOT NULL,
        messages INTEGER NOT NULL,
        tokens_before INTEGER NOT NULL,
        tokens_after INTEGER NOT NULL,
        problem TEXT NOT NULL);

CREATE INDEX compactions_conversation ON compactions (conversation_id, message_count);

CREATE INDEX memory_docs_scope ON memory_docs (scope);

CREATE TABLE memory_passages (id INTEGER PRIMARY KEY, path TEXT NOT NULL, line INTEGER NOT NULL);

CREATE INDEX memory_passages_path ON memory_passages (path);

CREATE TABLE trace_queue (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT REFERENCES runs ON DELETE CASCADE,
        call_id TEXT);

CREATE INDEX trace_queue_run ON trace_queue (run_id);

CREATE TABLE trace_export (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        owner TEXT,
        seq INTEGER NOT NULL DEFAULT 0,
        sent INTEGER NOT NULL DEFAULT 0, rejected INTEGER NOT NULL DEFAULT 0, rejected_why TEXT NOT NULL DEFAULT '');

CREATE INDEX messages_tracking
    ON messages (conversation_id, task_process_status, role, tracked_task_id, seq);

CREATE TABLE "events" (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL,
        conversation_id TEXT,
        message_id TEXT,
        run_id TEXT,
        agent_id TEXT,
        type TEXT NOT NULL,
        payload_json TEXT NOT NULL,
        ts REAL NOT NULL);

CREATE INDEX events_conversation ON events (conversation_id, seq);

CREATE TABLE cancel_requests (
            conversation_id TEXT PRIMARY KEY REFERENCES conversations ON DELETE CASCADE,
            run_id TEXT,
            requested_at REAL NOT NULL) WITHOUT ROWID;

CREATE INDEX tool_calls_ended ON tool_calls (ended_at, name, status, duration_ms, output_bytes,
        conversation_id, assistant_message_id) WHERE ended_at IS NOT NULL;

CREATE TABLE spans (
        id TEXT PRIMARY KEY,
        trace_id TEXT NOT NULL REFERENCES traces ON DELETE CASCADE,
        parent_span_id TEXT,
        kind TEXT NOT NULL CHECK (kind IN ('agent', 'llm', 'tool', 'aside')),
        name TEXT NOT NULL,
        iteration INTEGER NOT NULL,
        provider TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT '',
        input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0,
        status TEXT NOT NULL,
        error TEXT NOT NULL DEFAULT '',
        output_preview TEXT NOT NULL DEFAULT '',
        input_preview TEXT NOT NULL DEFAULT '',
        started_at REAL NOT NULL,
        duration_ms INTEGER NOT NULL, tool_use_id TEXT NOT NULL DEFAULT '');

CREATE INDEX spans_trace ON spans (trace_id);

CREATE TABLE copied_rows (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        origin TEXT NOT NULL);

CREATE INDEX copied_rows_origin ON copied_rows (origin);

CREATE INDEX copied_rows_conversation ON copied_rows (conversation_id);

CREATE TABLE model_calls (
        id TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
        run_id TEXT,
        message_id TEXT,
        purpose TEXT NOT NULL CHECK (purpose IN ('reply', 'compaction', 'routing', 'title', 'turn_summary',
            'suggestion', 'aside', 'earlier', 'memory', 'tracking', 'web_search', 'web_page', 'sampling')),
        status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'cancelled')),
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        iteration INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_creation_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL CHECK (estimated IN (0, 1)),
        cost_usd REAL,
        started_at REAL NOT NULL,
        duration_ms INTEGER NOT NULL,
        error TEXT NOT NULL, web_searches INTEGER NOT NULL DEFAULT 0);

CREATE INDEX model_calls_conversation ON model_calls (conversation_id);

CREATE INDEX model_calls_run ON model_calls (run_id) WHERE run_id IS NOT NULL;

CREATE INDEX model_calls_started ON model_calls (started_at);

INSERT INTO search_backlog (below, total) VALUES (1, 0);
