BEGIN TRANSACTION;
CREATE TABLE lamina_attempt_events (
	number BIGINT NOT NULL, 
	position INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	shape_id TEXT, 
	PRIMARY KEY (number, position)
)
 WITHOUT ROWID

;
INSERT INTO "lamina_attempt_events" VALUES(1,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(1,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"switch_generation","physical":"shop__lamina.names__v_b13d4b820ef7e1d4","generation":"shop__lamina.names__v_b13d4b820ef7e1d4__g_1","shape":null,"description":null,"beneath":null},"rows":2,"reason":null}}','15ec1820bd8734614ef16f5c074be3db');
INSERT INTO "lamina_attempt_events" VALUES(1,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(2,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(2,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"switch_generation","physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","generation":"shop__lamina.orders__v_5a66f8ff0bb0fe35__g_2","shape":null,"description":null,"beneath":null},"rows":3,"reason":null}}','d12bd6792063da1348b1e4df9df89e34');
INSERT INTO "lamina_attempt_events" VALUES(2,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(3,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(3,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"switch_generation","physical":"shop__lamina.plain__v_8fefa3adbc7137c1","generation":"shop__lamina.plain__v_8fefa3adbc7137c1__g_3","shape":null,"description":null,"beneath":null},"rows":1,"reason":null}}','15ec1820bd8734614ef16f5c074be3db');
INSERT INTO "lamina_attempt_events" VALUES(3,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(4,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(4,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"switch_generation","physical":"shop__lamina.often__v_6854d4805f9cab98","generation":"shop__lamina.often__v_6854d4805f9cab98__g_4","shape":null,"description":null,"beneath":null},"rows":1,"reason":null}}','15ec1820bd8734614ef16f5c074be3db');
INSERT INTO "lamina_attempt_events" VALUES(4,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(5,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(5,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"switch_generation","physical":"shop__lamina.joined__v_d80cc6477f1a4d6a","generation":"shop__lamina.joined__v_d80cc6477f1a4d6a__g_5","shape":null,"description":null,"beneath":null},"rows":1,"reason":null}}','15ec1820bd8734614ef16f5c074be3db');
INSERT INTO "lamina_attempt_events" VALUES(5,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(6,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(6,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"switch_generation","physical":"shop__lamina.totals__v_35ea545cbf0e8b80","generation":"shop__lamina.totals__v_35ea545cbf0e8b80__g_6","shape":null,"description":null,"beneath":null},"rows":1,"reason":null}}','15ec1820bd8734614ef16f5c074be3db');
INSERT INTO "lamina_attempt_events" VALUES(6,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(7,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(7,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"switch_generation","physical":"shop__lamina.people__v_e37874c651b98fbd","generation":"shop__lamina.people__v_e37874c651b98fbd__g_7","shape":null,"description":null,"beneath":null},"rows":1,"reason":null}}','15ec1820bd8734614ef16f5c074be3db');
INSERT INTO "lamina_attempt_events" VALUES(7,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(8,1,'open','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
INSERT INTO "lamina_attempt_events" VALUES(8,2,'decided','{"v":1,"is":"event","d":{"publish":{"is":"set_view","physical":"shop__lamina.shown__v_fdaf0bb398e1166a","generation":"shop__lamina.shown__v_fdaf0bb398e1166a__g_8","sql":"SELECT ds, x FROM `shop__lamina`.`totals__v_35ea545cbf0e8b80` AS `totals`","shape":null,"description":null},"rows":null,"reason":null}}','15ec1820bd8734614ef16f5c074be3db');
INSERT INTO "lamina_attempt_events" VALUES(8,3,'done','{"v":1,"is":"event","d":{"publish":null,"rows":null,"reason":null}}',NULL);
CREATE TABLE lamina_attempts (
	number BIGINT NOT NULL, 
	physical TEXT NOT NULL, 
	token BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "lamina_attempts" VALUES(3,'shop__lamina.plain__v_8fefa3adbc7137c1',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":3,"physical":"shop__lamina.plain__v_8fefa3adbc7137c1","token":1,"status":"open","interval":null,"folder":"_lamina_a6645818/plain__v_8fefa3adbc7137c1/3","generation":"shop__lamina.plain__v_8fefa3adbc7137c1__g_3","base_sequence":0,"reads":[],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
INSERT INTO "lamina_attempts" VALUES(1,'shop__lamina.names__v_b13d4b820ef7e1d4',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":1,"physical":"shop__lamina.names__v_b13d4b820ef7e1d4","token":1,"status":"open","interval":null,"folder":"_lamina_a6645818/names__v_b13d4b820ef7e1d4/1","generation":"shop__lamina.names__v_b13d4b820ef7e1d4__g_1","base_sequence":0,"reads":[],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
INSERT INTO "lamina_attempts" VALUES(2,'shop__lamina.orders__v_5a66f8ff0bb0fe35',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":2,"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","token":1,"status":"open","interval":[1704067200000000,1704326400000000],"folder":"_lamina_a6645818/orders__v_5a66f8ff0bb0fe35/2","generation":"shop__lamina.orders__v_5a66f8ff0bb0fe35__g_2","base_sequence":0,"reads":[],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
INSERT INTO "lamina_attempts" VALUES(5,'shop__lamina.joined__v_d80cc6477f1a4d6a',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":5,"physical":"shop__lamina.joined__v_d80cc6477f1a4d6a","token":1,"status":"open","interval":null,"folder":"_lamina_a6645818/joined__v_d80cc6477f1a4d6a/5","generation":"shop__lamina.joined__v_d80cc6477f1a4d6a__g_5","base_sequence":0,"reads":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
INSERT INTO "lamina_attempts" VALUES(6,'shop__lamina.totals__v_35ea545cbf0e8b80',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":6,"physical":"shop__lamina.totals__v_35ea545cbf0e8b80","token":1,"status":"open","interval":null,"folder":"_lamina_a6645818/totals__v_35ea545cbf0e8b80/6","generation":"shop__lamina.totals__v_35ea545cbf0e8b80__g_6","base_sequence":0,"reads":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
INSERT INTO "lamina_attempts" VALUES(4,'shop__lamina.often__v_6854d4805f9cab98',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":4,"physical":"shop__lamina.often__v_6854d4805f9cab98","token":1,"status":"open","interval":null,"folder":"_lamina_a6645818/often__v_6854d4805f9cab98/4","generation":"shop__lamina.often__v_6854d4805f9cab98__g_4","base_sequence":0,"reads":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
INSERT INTO "lamina_attempts" VALUES(7,'shop__lamina.people__v_e37874c651b98fbd',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":7,"physical":"shop__lamina.people__v_e37874c651b98fbd","token":1,"status":"open","interval":null,"folder":"_lamina_a6645818/people__v_e37874c651b98fbd/7","generation":"shop__lamina.people__v_e37874c651b98fbd__g_7","base_sequence":0,"reads":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
INSERT INTO "lamina_attempts" VALUES(8,'shop__lamina.shown__v_fdaf0bb398e1166a',1,'run-1-2','{"v":1,"is":"attempt","d":{"number":8,"physical":"shop__lamina.shown__v_fdaf0bb398e1166a","token":1,"status":"open","interval":null,"folder":"_lamina_a6645818/shown__v_fdaf0bb398e1166a/8","generation":"shop__lamina.shown__v_fdaf0bb398e1166a__g_8","base_sequence":0,"reads":[{"physical":"shop__lamina.totals__v_35ea545cbf0e8b80","sequence":1}],"seeded":[],"publish":null,"execution_time":1704326400000000,"rows":null}}');
CREATE TABLE lamina_audited (
	physical TEXT NOT NULL, 
	change BIGINT NOT NULL, 
	outcomes TEXT NOT NULL, 
	PRIMARY KEY (physical, change)
)
 WITHOUT ROWID

;
INSERT INTO "lamina_audited" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35',1,'{"v":1,"is":"audit outcomes","d":{"a300d8298397aef4194ff906be61820a":{"passed":[[1704067200000000,1704326400000000]],"failed":[],"skipped":[]},"8731b5681c398acd09efc0b2470ce1d2":{"passed":[[1704067200000000,1704326400000000]],"failed":[],"skipped":[]}}}');
CREATE TABLE lamina_audits (
	position INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	node TEXT NOT NULL, 
	physical TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	interval_start BIGINT, 
	interval_end BIGINT, 
	is_shown INTEGER NOT NULL, 
	audit_key TEXT, 
	name TEXT NOT NULL, 
	call TEXT NOT NULL, 
	status TEXT NOT NULL, 
	is_blocking INTEGER NOT NULL, 
	failing_rows BIGINT NOT NULL, 
	kept_at TEXT, 
	recorded_at BIGINT NOT NULL, 
	PRIMARY KEY (position)
);
INSERT INTO "lamina_audits" VALUES(1,'run-1-2','shop.orders','shop__lamina.orders__v_5a66f8ff0bb0fe35',2,1704067200000000,1704326400000000,1,'a300d8298397aef4194ff906be61820a','not_null','not_null(columns := (ds))','passed',1,0,NULL,1717243200000000);
INSERT INTO "lamina_audits" VALUES(2,'run-1-2','shop.orders','shop__lamina.orders__v_5a66f8ff0bb0fe35',2,1704067200000000,1704326400000000,1,'8731b5681c398acd09efc0b2470ce1d2','marked','marked','passed',1,0,NULL,1717243200000000);
CREATE TABLE lamina_batches (
	position INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	node TEXT NOT NULL, 
	physical TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	interval_start BIGINT, 
	interval_end BIGINT, 
	status TEXT NOT NULL, 
	rows BIGINT, 
	seconds FLOAT NOT NULL, 
	statements INTEGER NOT NULL, 
	finished_at BIGINT NOT NULL, 
	error TEXT, 
	PRIMARY KEY (position)
);
INSERT INTO "lamina_batches" VALUES(1,'run-1-2','shop.plain','shop__lamina.plain__v_8fefa3adbc7137c1',3,NULL,NULL,'succeeded',1,0.0,3,1717243200000000,NULL);
INSERT INTO "lamina_batches" VALUES(2,'run-1-2','shop.names','shop__lamina.names__v_b13d4b820ef7e1d4',1,NULL,NULL,'succeeded',2,0.0,3,1717243200000000,NULL);
INSERT INTO "lamina_batches" VALUES(3,'run-1-2','shop.orders','shop__lamina.orders__v_5a66f8ff0bb0fe35',2,1704067200000000,1704326400000000,'succeeded',3,0.0,4,1717243200000000,NULL);
INSERT INTO "lamina_batches" VALUES(4,'run-1-2','shop.often','shop__lamina.often__v_6854d4805f9cab98',4,NULL,NULL,'succeeded',1,0.0,3,1717243200000000,NULL);
INSERT INTO "lamina_batches" VALUES(5,'run-1-2','shop.totals','shop__lamina.totals__v_35ea545cbf0e8b80',6,NULL,NULL,'succeeded',1,0.0,3,1717243200000000,NULL);
INSERT INTO "lamina_batches" VALUES(6,'run-1-2','shop.joined','shop__lamina.joined__v_d80cc6477f1a4d6a',5,NULL,NULL,'succeeded',1,0.0,3,1717243200000000,NULL);
INSERT INTO "lamina_batches" VALUES(7,'run-1-2','shop.people','shop__lamina.people__v_e37874c651b98fbd',7,NULL,NULL,'succeeded',1,0.0,3,1717243200000000,NULL);
INSERT INTO "lamina_batches" VALUES(8,'run-1-2','shop.shown','shop__lamina.shown__v_fdaf0bb398e1166a',8,NULL,NULL,'succeeded',NULL,0.0,2,1717243200000000,NULL);
CREATE TABLE lamina_definitions (
	definition_id TEXT NOT NULL, 
	model TEXT NOT NULL, 
	PRIMARY KEY (definition_id)
);
INSERT INTO "lamina_definitions" VALUES('0d50f8aa1e02e38339d94883','{"v":1,"is":"model","d":{"name":"shop.plain","kind":{"is":"full"},"body":{"is":"sql","query":{"source":{"text":"SELECT ds, x FROM raw.orders","location":{"file":"models/plain.sql","line":2,"column":1},"dialect":"spark"},"expanded":"SELECT ds, x FROM raw.orders","is_time_dependent":false},"canonical":"(select expressions=[(column this=`ds`) (column this=`x`)] from_=(from this=(table db=`raw` this=`orders`)))","pre_statements":[],"post_statements":[],"on_virtual_update":[],"macros":{"variables":{},"blueprint":{},"definitions":[],"modules":[]},"has_star":false},"reads":["raw.orders"],"location":{"file":"models/plain.sql","line":1,"column":1},"references":{"raw.orders":"raw.orders"},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('480ba451565db42368e96a94','{"v":1,"is":"model","d":{"name":"shop.names","kind":{"is":"seed","path":"$root/seeds/names.csv","batch_size":1000,"csv_settings":{"delimiter":",","quotechar":"\"","doublequote":true,"escapechar":null,"skipinitialspace":false,"lineterminator":null,"encoding":"utf-8","na_values":[],"na_values_by_column":{},"keep_default_na":true}},"body":{"is":"seed","path":"seeds/names.csv","content_hash":"adc8baf861ffc9c32c50068ed107628a894b435af32ea0724e7e741d99a7fe8e","on_virtual_update":[],"macros":{"variables":{},"blueprint":{},"definitions":[],"modules":[]}},"reads":[],"location":{"file":"seeds/names.csv","line":1,"column":null},"references":{},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('dc13ba37bac030e882058386','{"v":1,"is":"model","d":{"name":"shop.orders","kind":{"is":"incremental_by_time_range","time_column":{"name":"ds","format":null},"batch_size":null,"batch_concurrency":null,"lookback":0,"partition_by_time_column":true,"policy":{"forward_only":false,"disable_restatement":false,"on_destructive_change":"error","on_additive_change":"allow","auto_restatement_cron":null,"auto_restatement_intervals":null}},"body":{"is":"sql","query":{"source":{"text":"SELECT ds, @lowered(x) AS x FROM raw.orders WHERE ds BETWEEN @start_ds AND @end_ds","location":{"file":"models/orders.sql","line":10,"column":1},"dialect":"spark"},"expanded":"SELECT ds, lower(x) AS x FROM raw.orders WHERE ds BETWEEN @start_ds AND @end_ds","is_time_dependent":false},"canonical":"(select expressions=[(column this=`ds`) (alias alias=`x` this=(lower this=(column this=`x`)))] from_=(from this=(table db=`raw` this=`orders`)) where=(where this=(between high=(parameter this=(var this=\"end_ds\")) low=(parameter this=(var this=\"start_ds\")) this=(column this=`ds`))))","pre_statements":[{"source":{"text":"SET spark.some.mark = @mark","location":{"file":"models/orders.sql","line":9,"column":1},"dialect":"spark"},"expanded":"SET spark.some.mark = ''it\\''s a mark''","is_time_dependent":false}],"post_statements":[],"on_virtual_update":[],"macros":{"variables":{"mark":"it''s a mark"},"blueprint":{},"definitions":[],"modules":[{"name":"macros.lowered","path":"macros/lowered.py","source":"from lamina import macro\n\n@macro()\ndef lowered(evaluator, column):\n    return f\"lower({column.sql()})\"\n"}]},"has_star":false},"reads":["raw.orders"],"location":{"file":"models/orders.sql","line":1,"column":1},"references":{"raw.orders":"raw.orders"},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[{"name":"not_null","arguments":{"columns":"(ds)"},"blocking":null,"skip":null,"location":{"file":"models/orders.sql","line":4,"column":11},"code":{"query":{"source":{"text":"SELECT * FROM __lamina_this_model WHERE (`ds` IS NULL)","location":{"file":"models/orders.sql","line":4,"column":11},"dialect":"spark"},"expanded":"SELECT * FROM __lamina_this_model WHERE (`ds` IS NULL)","is_time_dependent":false},"parameters":{},"references":{},"macros":{"variables":{},"blueprint":{},"definitions":[],"modules":[]},"is_blocking":true,"is_skipped":false}},{"name":"marked","arguments":{},"blocking":null,"skip":null,"location":{"file":"models/orders.sql","line":4,"column":38},"code":{"query":{"source":{"text":"SELECT * FROM @this_model WHERE x = @mark","location":{"file":"audits/marked.sql","line":2,"column":1},"dialect":"spark"},"expanded":"SELECT * FROM __lamina_this_model WHERE x = ''it\\''s a mark''","is_time_dependent":false},"parameters":{},"references":{},"macros":{"variables":{"mark":"it''s a mark"},"blueprint":{},"definitions":[],"modules":[]},"is_blocking":true,"is_skipped":false}}],"standalone_audits":[],"source_audits":{},"signals":[{"name":"is_there","arguments":{"mark":"@mark"},"values":{"mark":"it''s a mark"},"location":{"file":"models/orders.sql","line":6,"column":12},"code":{"module":"signals.is_there","function":"is_there","modules":[{"name":"signals.is_there","path":"signals/is_there.py","source":"from lamina import signal\n\n@signal()\ndef is_there(batch, mark):\n    return True\n"}],"variables":{}}}],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":["ds"],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{"spark.sql.mark":"@mark"},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('93e84a6bf956d3ad94dbe8c1','{"v":1,"is":"model","d":{"name":"shop.joined","kind":{"is":"full"},"body":{"is":"sql","query":{"source":{"text":"SELECT ds, x FROM shop.within","location":{"file":"models/joined.sql","line":2,"column":1},"dialect":"spark"},"expanded":"SELECT ds, x FROM shop.within","is_time_dependent":false},"canonical":"(select expressions=[(column this=`ds`) (column this=`x`)] from_=(from this=(table db=`shop` this=`within`)))","pre_statements":[],"post_statements":[],"on_virtual_update":[],"macros":{"variables":{},"blueprint":{},"definitions":[],"modules":[]},"has_star":false},"reads":["shop.within"],"location":{"file":"models/joined.sql","line":1,"column":1},"references":{"shop.within":"shop.within"},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('fbef88b8f8d81547a9cc2b7a','{"v":1,"is":"model","d":{"name":"shop.totals","kind":{"is":"full"},"body":{"is":"sql","query":{"source":{"text":"SELECT ds, x, @mark AS mark FROM shop.orders /* all of them */ WHERE x <> @region","location":{"file":"models/totals.sql","line":2,"column":1},"dialect":"spark"},"expanded":"SELECT ds, x, ''it\\''s a mark'' AS mark FROM shop.orders /* all of them */ WHERE x <> ''eu''","is_time_dependent":false},"canonical":"(select expressions=[(column this=`ds`) (column this=`x`) (alias alias=`mark` this=\"it''s a mark\")] from_=(from this=(table db=`shop` this=`orders`)) where=(where this=(neq expression=\"eu\" this=(column this=`x`))))","pre_statements":[],"post_statements":[],"on_virtual_update":[],"macros":{"variables":{"mark":"it''s a mark","region":"eu"},"blueprint":{},"definitions":[],"modules":[]},"has_star":false},"reads":["shop.orders"],"location":{"file":"models/totals.sql","line":1,"column":1},"references":{"shop.orders":"shop.orders"},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null},{"name":"mark","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":"ann","tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('951cd0f1756694b197545470','{"v":1,"is":"model","d":{"name":"shop.often","kind":{"is":"full"},"body":{"is":"sql","query":{"source":{"text":"SELECT ds, x, @IF(@region = ''eu'', 1, 2) AS r, @EVAL(@plain + 1) AS n, @IF(@execution_ds > ''2024'', 1, 2) AS t\nFROM shop.orders","location":{"file":"models/often.sql","line":2,"column":1},"dialect":"spark"},"expanded":"SELECT ds, x, 1 AS r, 8 AS n, 2 AS t\nFROM shop.orders","is_time_dependent":true},"canonical":"(select expressions=[(column this=`ds`) (column this=`x`) (alias alias=`r` this=1) (alias alias=`n` this=8) (alias alias=`t` this=2)] from_=(from this=(table db=`shop` this=`orders`)))","pre_statements":[],"post_statements":[],"on_virtual_update":[],"macros":{"variables":{"plain":7,"region":"eu"},"blueprint":{},"definitions":[],"modules":[]},"has_star":false},"reads":["shop.orders"],"location":{"file":"models/often.sql","line":1,"column":1},"references":{"shop.orders":"shop.orders"},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null},{"name":"r","type":null,"comment":null},{"name":"n","type":null,"comment":null},{"name":"t","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('4386588d203c8793774a4f7f','{"v":1,"is":"model","d":{"name":"shop.people","kind":{"is":"full"},"body":{"is":"python","module":"models.people","function":"execute","modules":[{"name":"models.people","path":"models/people.py","source":"from lamina import model\n\n@model(\"shop.people\", kind=\"FULL\", columns={\"ds\": \"string\", \"x\": \"string\"})\ndef execute(context, start, end, execution_time, **kwargs):\n    return context.table(\"shop.orders\").withColumn(\"m\", context.var(\"mark\"))\n"}],"variables":{"mark":"it''s a mark"},"on_virtual_update":[],"macros":{"variables":{},"blueprint":{},"definitions":[],"modules":[]}},"reads":["shop.orders"],"location":{"file":"models/people.py","line":3,"column":null},"references":{"shop.orders":"shop.orders"},"columns":[{"name":"ds","type":"string","comment":null},{"name":"x","type":"string","comment":null}],"columns_are_declared":true,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('3233961db9393cef185775ed','{"v":1,"is":"model","d":{"name":"shop.shown","kind":{"is":"view","materialized":false},"body":{"is":"sql","query":{"source":{"text":"SELECT ds, x FROM shop.totals","location":{"file":"models/shown.sql","line":2,"column":1},"dialect":"spark"},"expanded":"SELECT ds, x FROM shop.totals","is_time_dependent":false},"canonical":"(select expressions=[(column this=`ds`) (column this=`x`)] from_=(from this=(table db=`shop` this=`totals`)))","pre_statements":[],"post_statements":[],"on_virtual_update":[{"source":{"text":"GRANT SELECT ON @this_model TO @mark","location":{"file":"models/shown.sql","line":4,"column":1},"dialect":"spark"},"expanded":"GRANT SELECT ON @this_model TO ''it\\''s a mark''","is_time_dependent":false}],"macros":{"variables":{"mark":"it''s a mark"},"blueprint":{},"definitions":[],"modules":[]},"has_star":false},"reads":["shop.totals"],"location":{"file":"models/shown.sql","line":1,"column":1},"references":{"shop.totals":"shop.totals"},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
INSERT INTO "lamina_definitions" VALUES('7e0ead6d87e97f7b7ef2892b','{"v":1,"is":"model","d":{"name":"shop.within","kind":{"is":"embedded"},"body":{"is":"sql","query":{"source":{"text":"SELECT ds, x FROM shop.orders WHERE x <> @mark","location":{"file":"models/within.sql","line":2,"column":1},"dialect":"spark"},"expanded":"SELECT ds, x FROM shop.orders WHERE x <> ''it\\''s a mark''","is_time_dependent":false},"canonical":"(select expressions=[(column this=`ds`) (column this=`x`)] from_=(from this=(table db=`shop` this=`orders`)) where=(where this=(neq expression=\"it''s a mark\" this=(column this=`x`))))","pre_statements":[],"post_statements":[],"on_virtual_update":[],"macros":{"variables":{"mark":"it''s a mark"},"blueprint":{},"definitions":[],"modules":[]},"has_star":false},"reads":["shop.orders"],"location":{"file":"models/within.sql","line":1,"column":1},"references":{"shop.orders":"shop.orders"},"columns":[{"name":"ds","type":null,"comment":null},{"name":"x","type":null,"comment":null}],"columns_are_declared":false,"dialect":"spark","description":null,"owner":null,"tags":[],"start":"2024-01-01","end":null,"cron":"@daily","cron_tz":"UTC","grain":"day","allow_partials":false,"stamp":null,"audits":[],"standalone_audits":[],"source_audits":{},"signals":[],"pre_hooks":[],"post_hooks":[],"grains":[],"partitioned_by":[],"clustered_by":[],"table_format":"parquet","storage_format":null,"physical_properties":{},"virtual_properties":{},"session_properties":{},"replay_on_change":null,"run_despite_unchanged":null,"wait_for_parents":true,"follow_rewrites":true,"seed_copy":null,"windows":{},"further":{}}}');
CREATE TABLE lamina_environments (
	environment TEXT NOT NULL, 
	newest BIGINT NOT NULL, 
	followed BIGINT NOT NULL, 
	PRIMARY KEY (environment)
);
INSERT INTO "lamina_environments" VALUES('prod',1,1);
INSERT INTO "lamina_environments" VALUES('dev',1,1);
CREATE TABLE lamina_heads (
	physical TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	generation TEXT NOT NULL, 
	attempt BIGINT NOT NULL, 
	shape_id TEXT NOT NULL, 
	view_sql TEXT, 
	contents TEXT NOT NULL, 
	snapshot BIGINT, 
	beneath TEXT, 
	PRIMARY KEY (physical, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "lamina_heads" VALUES('shop__lamina.joined__v_d80cc6477f1a4d6a',1,'shop__lamina.joined__v_d80cc6477f1a4d6a__g_5',5,'15ec1820bd8734614ef16f5c074be3db',NULL,'{"v":1,"is":"contents","d":[[null,"[(''all'', ''joined:x<2024-01-01=orders:lower(x) AS x<a1> 2024-01-02=orders:lower(x) AS x<a2> 2024-01-03=orders:lower(x) AS x<a3>>'')]"]]}',NULL,NULL);
INSERT INTO "lamina_heads" VALUES('shop__lamina.names__v_b13d4b820ef7e1d4',1,'shop__lamina.names__v_b13d4b820ef7e1d4__g_1',1,'15ec1820bd8734614ef16f5c074be3db',NULL,'{"v":1,"is":"contents","d":[[null,"[(''all'', ''2024-01-01,a''), (''all'', ''ds,x'')]"]]}',NULL,NULL);
INSERT INTO "lamina_heads" VALUES('shop__lamina.often__v_6854d4805f9cab98',1,'shop__lamina.often__v_6854d4805f9cab98__g_4',4,'15ec1820bd8734614ef16f5c074be3db',NULL,'{"v":1,"is":"contents","d":[[null,"[(''all'', ''often:?<2024-01-01=orders:lower(x) AS x<a1> 2024-01-02=orders:lower(x) AS x<a2> 2024-01-03=orders:lower(x) AS x<a3>>'')]"]]}',NULL,NULL);
INSERT INTO "lamina_heads" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35',1,'shop__lamina.orders__v_5a66f8ff0bb0fe35__g_2',2,'d12bd6792063da1348b1e4df9df89e34',NULL,'{"v":1,"is":"contents","d":[]}',NULL,NULL);
INSERT INTO "lamina_heads" VALUES('shop__lamina.people__v_e37874c651b98fbd',1,'shop__lamina.people__v_e37874c651b98fbd__g_7',7,'15ec1820bd8734614ef16f5c074be3db',NULL,'{"v":1,"is":"contents","d":[[null,"[(''all'', ''people:?<2024-01-01=orders:lower(x) AS x<a1> 2024-01-02=orders:lower(x) AS x<a2> 2024-01-03=orders:lower(x) AS x<a3>>'')]"]]}',NULL,NULL);
INSERT INTO "lamina_heads" VALUES('shop__lamina.plain__v_8fefa3adbc7137c1',1,'shop__lamina.plain__v_8fefa3adbc7137c1__g_3',3,'15ec1820bd8734614ef16f5c074be3db',NULL,'{"v":1,"is":"contents","d":[[null,"[(''all'', ''plain:x<2024-01-01=a1 2024-01-02=a2 2024-01-03=a3 2024-01-04=a4 2024-01-05=a5 2024-01-06=a6 2024-01-07=a7 2024-01-08=a8 2024-01-09=a9 2024-01-10=a10 2024-01-11=a11 2024-01-12=a12 2024-01-13=a13 2024-01-14=a14 2024-01-15=a15 2024-01-16=a16 2024-01-17=a17 2024-01-18=a18 2024-01-19=a19 2024-01-20=a20 2024-01-21=a21 2024-01-22=a22 2024-01-23=a23 2024-01-24=a24 2024-01-25=a25 2024-01-26=a26 2024-01-27=a27 2024-01-28=a28 2024-01-29=a29 2024-01-30=a30 2024-01-31=a31>'')]"]]}',NULL,NULL);
INSERT INTO "lamina_heads" VALUES('shop__lamina.shown__v_fdaf0bb398e1166a',1,'shop__lamina.shown__v_fdaf0bb398e1166a__g_8',8,'15ec1820bd8734614ef16f5c074be3db','SELECT ds, x FROM `shop__lamina`.`totals__v_35ea545cbf0e8b80` AS `totals`','{"v":1,"is":"contents","d":[]}',NULL,NULL);
INSERT INTO "lamina_heads" VALUES('shop__lamina.totals__v_35ea545cbf0e8b80',1,'shop__lamina.totals__v_35ea545cbf0e8b80__g_6',6,'15ec1820bd8734614ef16f5c074be3db',NULL,'{"v":1,"is":"contents","d":[[null,"[(''all'', \"totals:x, ''it\\\\''s a mark'' AS mark<2024-01-01=orders:lower(x) AS x<a1> 2024-01-02=orders:lower(x) AS x<a2> 2024-01-03=orders:lower(x) AS x<a3>>\")]"]]}',NULL,NULL);
CREATE TABLE lamina_leases (
	resource TEXT NOT NULL, 
	token BIGINT NOT NULL, 
	owner TEXT NOT NULL, 
	status TEXT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	PRIMARY KEY (resource, token)
);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.names__v_b13d4b820ef7e1d4',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063186958727);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.orders__v_5a66f8ff0bb0fe35',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063186961180);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.plain__v_8fefa3adbc7137c1',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063186962754);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.often__v_6854d4805f9cab98',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063187014316);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.totals__v_35ea545cbf0e8b80',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063187020928);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.joined__v_d80cc6477f1a4d6a',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063187025124);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.people__v_e37874c651b98fbd',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063187065045);
INSERT INTO "lamina_leases" VALUES('version:shop__lamina.shown__v_fdaf0bb398e1166a',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063187105068);
INSERT INTO "lamina_leases" VALUES('environment:prod',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":1,"command":"build","started_at":1717243200000000,"processes":["desk 1"],"catalog":null,"is_carried":true}}','released',1795063187133502);
INSERT INTO "lamina_leases" VALUES('environment:dev',1,'{"v":1,"is":"owner","d":{"host":"desk","boot":"b00t","process":3,"command":"build","started_at":1717243200000000,"processes":["desk 2"],"catalog":null,"is_carried":true}}','released',1795063187202420);
CREATE TABLE lamina_manifest (
	physical TEXT NOT NULL, 
	partition TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	folder TEXT, 
	PRIMARY KEY (physical, partition, sequence)
)
 WITHOUT ROWID

;
INSERT INTO "lamina_manifest" VALUES('shop__lamina.joined__v_d80cc6477f1a4d6a','[]',1,'_lamina_a6645818/joined__v_d80cc6477f1a4d6a/5');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.names__v_b13d4b820ef7e1d4','[]',1,'_lamina_a6645818/names__v_b13d4b820ef7e1d4/1');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.often__v_6854d4805f9cab98','[]',1,'_lamina_a6645818/often__v_6854d4805f9cab98/4');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35','["2024-01-01"]',1,'_lamina_a6645818/orders__v_5a66f8ff0bb0fe35/2/2024-01-01');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35','["2024-01-02"]',1,'_lamina_a6645818/orders__v_5a66f8ff0bb0fe35/2/2024-01-02');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35','["2024-01-03"]',1,'_lamina_a6645818/orders__v_5a66f8ff0bb0fe35/2/2024-01-03');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.people__v_e37874c651b98fbd','[]',1,'_lamina_a6645818/people__v_e37874c651b98fbd/7');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.plain__v_8fefa3adbc7137c1','[]',1,'_lamina_a6645818/plain__v_8fefa3adbc7137c1/3');
INSERT INTO "lamina_manifest" VALUES('shop__lamina.totals__v_35ea545cbf0e8b80','[]',1,'_lamina_a6645818/totals__v_35ea545cbf0e8b80/6');
CREATE TABLE lamina_numbers (
	name TEXT NOT NULL, 
	next BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "lamina_numbers" VALUES('attempts',9);
CREATE TABLE lamina_revisions (
	environment TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	status TEXT NOT NULL, 
	created_at BIGINT, 
	pointers TEXT NOT NULL, 
	PRIMARY KEY (environment, number)
);
INSERT INTO "lamina_revisions" VALUES('prod',1,'finalized',1717243200000000,'{"v":1,"is":"pointers","d":{"shop.joined":["d80cc6477f1a4d6a","93e84a6bf956d3ad94dbe8c1","shop__lamina.joined__v_d80cc6477f1a4d6a"],"shop.people":["e37874c651b98fbd","4386588d203c8793774a4f7f","shop__lamina.people__v_e37874c651b98fbd"],"shop.totals":["35ea545cbf0e8b80","fbef88b8f8d81547a9cc2b7a","shop__lamina.totals__v_35ea545cbf0e8b80"],"shop.orders":["5a66f8ff0bb0fe35","dc13ba37bac030e882058386","shop__lamina.orders__v_5a66f8ff0bb0fe35"],"shop.within":["51461565dd5cfb18","7e0ead6d87e97f7b7ef2892b",null],"shop.shown":["fdaf0bb398e1166a","3233961db9393cef185775ed","shop__lamina.shown__v_fdaf0bb398e1166a"],"shop.often":["6854d4805f9cab98","951cd0f1756694b197545470","shop__lamina.often__v_6854d4805f9cab98"],"shop.plain":["8fefa3adbc7137c1","0d50f8aa1e02e38339d94883","shop__lamina.plain__v_8fefa3adbc7137c1"],"shop.names":["b13d4b820ef7e1d4","480ba451565db42368e96a94","shop__lamina.names__v_b13d4b820ef7e1d4"]}}');
INSERT INTO "lamina_revisions" VALUES('dev',1,'finalized',1717243200000000,'{"v":1,"is":"pointers","d":{"shop.joined":["d80cc6477f1a4d6a","93e84a6bf956d3ad94dbe8c1","shop__lamina.joined__v_d80cc6477f1a4d6a"],"shop.people":["e37874c651b98fbd","4386588d203c8793774a4f7f","shop__lamina.people__v_e37874c651b98fbd"],"shop.totals":["35ea545cbf0e8b80","fbef88b8f8d81547a9cc2b7a","shop__lamina.totals__v_35ea545cbf0e8b80"],"shop.orders":["5a66f8ff0bb0fe35","dc13ba37bac030e882058386","shop__lamina.orders__v_5a66f8ff0bb0fe35"],"shop.within":["51461565dd5cfb18","7e0ead6d87e97f7b7ef2892b",null],"shop.shown":["fdaf0bb398e1166a","3233961db9393cef185775ed","shop__lamina.shown__v_fdaf0bb398e1166a"],"shop.often":["6854d4805f9cab98","951cd0f1756694b197545470","shop__lamina.often__v_6854d4805f9cab98"],"shop.plain":["8fefa3adbc7137c1","0d50f8aa1e02e38339d94883","shop__lamina.plain__v_8fefa3adbc7137c1"],"shop.names":["b13d4b820ef7e1d4","480ba451565db42368e96a94","shop__lamina.names__v_b13d4b820ef7e1d4"]}}');
CREATE TABLE lamina_rewrites (
	physical TEXT NOT NULL, 
	sequence BIGINT NOT NULL, 
	intervals TEXT NOT NULL, 
	is_asked INTEGER NOT NULL, 
	PRIMARY KEY (physical, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE lamina_run_ends (
	run_id TEXT NOT NULL, 
	status TEXT NOT NULL, 
	finished_at BIGINT NOT NULL, 
	PRIMARY KEY (run_id)
);
INSERT INTO "lamina_run_ends" VALUES('run-1-2','succeeded',1717243200000000);
INSERT INTO "lamina_run_ends" VALUES('run-3-4','succeeded',1717243200000000);
CREATE TABLE lamina_runs (
	position INTEGER NOT NULL, 
	run_id TEXT NOT NULL, 
	command TEXT NOT NULL, 
	environment TEXT NOT NULL, 
	started_at BIGINT NOT NULL, 
	execution_time BIGINT NOT NULL, 
	PRIMARY KEY (position), 
	UNIQUE (run_id)
);
INSERT INTO "lamina_runs" VALUES(1,'run-1-2','build','prod',1717243200000000,1704326400000000);
INSERT INTO "lamina_runs" VALUES(2,'run-3-4','build','dev',1717243200000000,1704326400000000);
CREATE TABLE lamina_shapes (
	shape_id TEXT NOT NULL, 
	shape TEXT NOT NULL, 
	PRIMARY KEY (shape_id)
);
INSERT INTO "lamina_shapes" VALUES('15ec1820bd8734614ef16f5c074be3db','{"v":1,"is":"shape","d":{"columns":[{"name":"ds","type":"timestamp","comment":null},{"name":"x","type":"string","comment":null}],"partition_columns":[]}}');
INSERT INTO "lamina_shapes" VALUES('d12bd6792063da1348b1e4df9df89e34','{"v":1,"is":"shape","d":{"columns":[{"name":"ds","type":"timestamp","comment":null},{"name":"x","type":"string","comment":null}],"partition_columns":[{"name":"ds","type":"string","expression":null}]}}');
CREATE TABLE lamina_store (
	store_id TEXT NOT NULL, 
	schema_version INTEGER NOT NULL, 
	PRIMARY KEY (store_id)
);
INSERT INTO "lamina_store" VALUES('a6645818',3);
CREATE TABLE lamina_unfinished (
	number BIGINT NOT NULL, 
	physical TEXT NOT NULL, 
	status TEXT NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE lamina_versions (
	physical TEXT NOT NULL, 
	node TEXT NOT NULL, 
	version TEXT NOT NULL, 
	incarnation INTEGER NOT NULL, 
	definition_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	"query" TEXT NOT NULL, 
	config TEXT NOT NULL, 
	functions TEXT NOT NULL, 
	metadata TEXT NOT NULL, 
	row_set TEXT NOT NULL, 
	whole TEXT NOT NULL, 
	columns TEXT NOT NULL, 
	recorded_at BIGINT NOT NULL, 
	PRIMARY KEY (physical)
);
INSERT INTO "lamina_versions" VALUES('shop__lamina.plain__v_8fefa3adbc7137c1','shop.plain','8fefa3adbc7137c1',1,'0d50f8aa1e02e38339d94883','FULL','e71e9901c7e029a87dd87645587f1706','5e595c19266b2d0eb9e34fc3fca060a3','2e38e77b22c314a449e91fafed92a438','1446f181b6b87ac8a5cf90fb34c64787','8fefa3adbc7137c11ab02aa842c586e7','8fefa3adbc7137c11ab02aa842c586e7','{"v":1,"is":"column fingerprints","d":{"ds":"429384ca16897be2bc5bd4de1c4b1ee9","x":"b284bc768e6a53b55be23aae6a8d37cc"}}',1717243200000000);
INSERT INTO "lamina_versions" VALUES('shop__lamina.names__v_b13d4b820ef7e1d4','shop.names','b13d4b820ef7e1d4',1,'480ba451565db42368e96a94','SEED','78a4d83b7ab1fdfc49c8067b56700436','5f616cc5502670ac56b1390a8b499d90','2e38e77b22c314a449e91fafed92a438','ee0d97fa23017738d1684227332fdd6b','b13d4b820ef7e1d408abe5162ea50d2b','b13d4b820ef7e1d408abe5162ea50d2b','{"v":1,"is":"column fingerprints","d":{"ds":"32b0ee18d2aa46fe866f0a020d6c4a1f","x":"3bb7610a77b2ea0fd472a043e44e52f4"}}',1717243200000000);
INSERT INTO "lamina_versions" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35','shop.orders','5a66f8ff0bb0fe35',1,'dc13ba37bac030e882058386','INCREMENTAL_BY_TIME_RANGE','4464ae875eed1aa9e4458f5011ae152c','6131e5a6ae6425efefef6769e2407cbf','2e38e77b22c314a449e91fafed92a438','cf97c7644a48ca38683f9492c7ade037','5a66f8ff0bb0fe3526d708b6cf0edc91','5a66f8ff0bb0fe3526d708b6cf0edc91','{"v":1,"is":"column fingerprints","d":{"ds":"9be71b6f281b1d76e7be46c13817a6c9","x":"874e961a843de6b3fefdb55408c7cb34"}}',1717243200000000);
INSERT INTO "lamina_versions" VALUES('shop__lamina.joined__v_d80cc6477f1a4d6a','shop.joined','d80cc6477f1a4d6a',1,'93e84a6bf956d3ad94dbe8c1','FULL','225c70d4ebc2d25b7177bc7fa1a60179','5e595c19266b2d0eb9e34fc3fca060a3','2e38e77b22c314a449e91fafed92a438','1446f181b6b87ac8a5cf90fb34c64787','d80cc6477f1a4d6adc238a332ead6de2','d80cc6477f1a4d6adc238a332ead6de2','{"v":1,"is":"column fingerprints","d":{"ds":"cd15efa7baa814c6a5c13fc6cb012890","x":"43302502a512201923471590f2a253eb"}}',1717243200000000);
INSERT INTO "lamina_versions" VALUES('shop__lamina.totals__v_35ea545cbf0e8b80','shop.totals','35ea545cbf0e8b80',1,'fbef88b8f8d81547a9cc2b7a','FULL','03d3c24a3541bd639a96b567de8a8ad4','5e595c19266b2d0eb9e34fc3fca060a3','2e38e77b22c314a449e91fafed92a438','91e62f6d1e8f9842d6bf1a82b1982de7','35ea545cbf0e8b8013256d5b200e8b97','35ea545cbf0e8b8013256d5b200e8b97','{"v":1,"is":"column fingerprints","d":{"ds":"fad1936cdf8d3301a4f28f4a71d6c3fa","x":"d90d27b1c5bc23ca0dd0cf7f54da124c","mark":"04f36b029f456be68548e65eea5f6aba"}}',1717243200000000);
INSERT INTO "lamina_versions" VALUES('shop__lamina.often__v_6854d4805f9cab98','shop.often','6854d4805f9cab98',1,'951cd0f1756694b197545470','FULL','beb035c117b62af4c3b5ada80d281ba3','5e595c19266b2d0eb9e34fc3fca060a3','2e38e77b22c314a449e91fafed92a438','1446f181b6b87ac8a5cf90fb34c64787','6854d4805f9cab980530dedd2685432f','6854d4805f9cab980530dedd2685432f','{"v":1,"is":"column fingerprints","d":{"ds":"5c370ca9ea8c0689480a11bb14b3c372","x":"effae3cbe6b41650c6d2ceb68f06c7d4","r":"05ebc8c6788385af74cbaad443505df8","n":"c74c6480677f5409386d2f62a8af1526","t":"031a08c8fc74810bbf00763b00c74c01"}}',1717243200000000);
INSERT INTO "lamina_versions" VALUES('shop__lamina.people__v_e37874c651b98fbd','shop.people','e37874c651b98fbd',1,'4386588d203c8793774a4f7f','FULL','6f03819f5ac4071e2275db844ed7d3ec','475a31a7a15ae3a40dfee9132f76fbcd','2e38e77b22c314a449e91fafed92a438','1446f181b6b87ac8a5cf90fb34c64787','e37874c651b98fbd35d8d94511666b89','e37874c651b98fbd35d8d94511666b89','{"v":1,"is":"column fingerprints","d":{"ds":"a0814ce49a2d1ac5521648cb60a1b6ad","x":"f4c0c38b888904e479b65013a988b981"}}',1717243200000000);
INSERT INTO "lamina_versions" VALUES('shop__lamina.shown__v_fdaf0bb398e1166a','shop.shown','fdaf0bb398e1166a',1,'3233961db9393cef185775ed','VIEW','44448c769dc13dc2e871356760641a04','d19bc3539e459c0ec598fdfdf77bba02','2e38e77b22c314a449e91fafed92a438','69660d96dd0e743f6765ddc16de5ffec','fdaf0bb398e1166a189abfdd0eb2c245','fdaf0bb398e1166a189abfdd0eb2c245','{"v":1,"is":"column fingerprints","d":{"ds":"dd37b4434ef355f739907349230f7d89","x":"a12092134d31197ab24e1e7ed7c02c02"}}',1717243200000000);
CREATE TABLE lamina_work (
	physical TEXT NOT NULL, 
	mark BIGINT NOT NULL, 
	attempt BIGINT, 
	added TEXT, 
	removed TEXT, 
	covered TEXT NOT NULL, 
	reopened TEXT NOT NULL, 
	built_at BIGINT, 
	restated_at BIGINT, 
	reads TEXT NOT NULL, 
	PRIMARY KEY (physical, mark)
);
INSERT INTO "lamina_work" VALUES('shop__lamina.names__v_b13d4b820ef7e1d4',1,1,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35',1,2,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,1704326400000000,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.plain__v_8fefa3adbc7137c1',1,3,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.plain__v_8fefa3adbc7137c1',2,3,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',1704326400000000,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35',2,2,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,1704326400000000,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.names__v_b13d4b820ef7e1d4',2,1,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',1704326400000000,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.orders__v_5a66f8ff0bb0fe35',3,2,'{"v":1,"is":"intervals","d":[[1704067200000000,1704326400000000]]}',NULL,'{"v":1,"is":"intervals","d":[[1704067200000000,1704326400000000]]}','{"v":1,"is":"intervals","d":[]}',NULL,1704326400000000,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.often__v_6854d4805f9cab98',1,4,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.often__v_6854d4805f9cab98',2,4,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',1704326400000000,NULL,'{"v":1,"is":"reads","d":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.totals__v_35ea545cbf0e8b80',1,6,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.joined__v_d80cc6477f1a4d6a',1,5,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.totals__v_35ea545cbf0e8b80',2,6,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',1704326400000000,NULL,'{"v":1,"is":"reads","d":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.joined__v_d80cc6477f1a4d6a',2,5,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',1704326400000000,NULL,'{"v":1,"is":"reads","d":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.people__v_e37874c651b98fbd',1,7,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.people__v_e37874c651b98fbd',2,7,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',1704326400000000,NULL,'{"v":1,"is":"reads","d":[{"physical":"shop__lamina.orders__v_5a66f8ff0bb0fe35","sequence":1}]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.shown__v_fdaf0bb398e1166a',1,8,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',NULL,NULL,'{"v":1,"is":"reads","d":[]}');
INSERT INTO "lamina_work" VALUES('shop__lamina.shown__v_fdaf0bb398e1166a',2,8,NULL,NULL,'{"v":1,"is":"intervals","d":[]}','{"v":1,"is":"intervals","d":[]}',1704326400000000,NULL,'{"v":1,"is":"reads","d":[{"physical":"shop__lamina.totals__v_35ea545cbf0e8b80","sequence":1}]}');
CREATE INDEX lamina_versions_by_version ON lamina_versions (version);
CREATE INDEX lamina_unfinished_by_physical ON lamina_unfinished (physical);
CREATE INDEX lamina_leases_open ON lamina_leases (resource, token) WHERE status IN ('held', 'lost');
CREATE INDEX lamina_environments_behind ON lamina_environments (environment) WHERE followed < newest;
CREATE INDEX lamina_revisions_checkpoints ON lamina_revisions (environment, number) WHERE status = 'finalized';
CREATE INDEX lamina_batches_by_run ON lamina_batches (run_id, finished_at, position);
CREATE INDEX lamina_audits_by_run ON lamina_audits (run_id, position);
COMMIT;
