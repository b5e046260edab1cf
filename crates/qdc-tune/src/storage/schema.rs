//! Optuna's relational schema (alembic revision v3.2.0.a, schema version 12), as SQLAlchemy creates it.

/// The schema revision that this program reads and writes.
pub(super) const REVISION: &str = "v3.2.0.a";

/// What dialects call things.
#[derive(Debug)]
pub struct Words {
    pub(super) key: &'static str,
    pub(super) float: &'static str,
    pub(super) datetime: &'static str,
    pub(super) direction: &'static str,
    pub(super) state: &'static str,
    pub(super) value_type: &'static str,
    pub(super) intermediate_type: &'static str,
    pub(super) prelude: &'static str,
}

pub(super) const SQLITE: Words = Words {
    key: "INTEGER NOT NULL",
    float: "FLOAT",
    datetime: "DATETIME",
    direction: "VARCHAR(8)",
    state: "VARCHAR(8)",
    value_type: "VARCHAR(7)",
    intermediate_type: "VARCHAR(7)",
    prelude: "",
};

#[cfg(feature = "postgres")]
pub(super) const POSTGRES: Words = Words {
    key: "SERIAL NOT NULL",
    float: "FLOAT(53)",
    datetime: "TIMESTAMP WITHOUT TIME ZONE",
    direction: "studydirection",
    state: "trialstate",
    value_type: "trialvaluetype",
    intermediate_type: "trialintermediatevaluetype",
    prelude: "CREATE TYPE studydirection AS ENUM ('NOT_SET', 'MINIMIZE', 'MAXIMIZE');\n\
        CREATE TYPE trialstate AS ENUM ('RUNNING', 'COMPLETE', 'PRUNED', 'FAIL', 'WAITING');\n\
        CREATE TYPE trialvaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG');\n\
        CREATE TYPE trialintermediatevaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG', 'NAN');\n",
};

/// Statements that create everything.
pub(super) fn script(words: &Words) -> String {
    let Words { key, float, datetime, direction, state, value_type, intermediate_type, prelude } = words;
    let attributes = |table: &str, id: &str, parent: &str, parents: &str| {
        format!(
            "CREATE TABLE {table} (\n\t{id} {key}, \n\t{parent} INTEGER, \n\t\"key\" VARCHAR(512), \n\tvalue_json TEXT, \
             \n\tPRIMARY KEY ({id}), \n\tUNIQUE ({parent}, \"key\"), \
             \n\tFOREIGN KEY({parent}) REFERENCES {parents} ({parent})\n);\n"
        )
    };
    let mut script = String::from(*prelude);
    script += &format!(
        "CREATE TABLE studies (\n\tstudy_id {key}, \n\tstudy_name VARCHAR(512) NOT NULL, \n\tPRIMARY KEY (study_id)\n);\n\
         CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);\n\
         CREATE TABLE version_info (\n\tversion_info_id INTEGER NOT NULL, \n\tschema_version INTEGER, \
         \n\tlibrary_version VARCHAR(256), \n\tPRIMARY KEY (version_info_id), \n\tCHECK (version_info_id=1)\n);\n\
         CREATE TABLE study_directions (\n\tstudy_direction_id {key}, \n\tdirection {direction} NOT NULL, \
         \n\tstudy_id INTEGER NOT NULL, \n\tobjective INTEGER NOT NULL, \n\tPRIMARY KEY (study_direction_id), \
         \n\tUNIQUE (study_id, objective), \n\tFOREIGN KEY(study_id) REFERENCES studies (study_id)\n);\n"
    );
    script += &attributes("study_user_attributes", "study_user_attribute_id", "study_id", "studies");
    script += &attributes("study_system_attributes", "study_system_attribute_id", "study_id", "studies");
    script += &format!(
        "CREATE TABLE trials (\n\ttrial_id {key}, \n\tnumber INTEGER, \n\tstudy_id INTEGER, \n\tstate {state} NOT NULL, \
         \n\tdatetime_start {datetime}, \n\tdatetime_complete {datetime}, \n\tPRIMARY KEY (trial_id), \
         \n\tFOREIGN KEY(study_id) REFERENCES studies (study_id)\n);\n\
         CREATE INDEX ix_trials_study_id ON trials (study_id);\n"
    );
    script += &attributes("trial_user_attributes", "trial_user_attribute_id", "trial_id", "trials");
    script += &attributes("trial_system_attributes", "trial_system_attribute_id", "trial_id", "trials");
    script += &format!(
        "CREATE TABLE trial_params (\n\tparam_id {key}, \n\ttrial_id INTEGER, \n\tparam_name VARCHAR(512), \
         \n\tparam_value {float}, \n\tdistribution_json TEXT, \n\tPRIMARY KEY (param_id), \
         \n\tUNIQUE (trial_id, param_name), \n\tFOREIGN KEY(trial_id) REFERENCES trials (trial_id)\n);\n\
         CREATE TABLE trial_values (\n\ttrial_value_id {key}, \n\ttrial_id INTEGER NOT NULL, \
         \n\tobjective INTEGER NOT NULL, \n\tvalue {float}, \n\tvalue_type {value_type} NOT NULL, \
         \n\tPRIMARY KEY (trial_value_id), \n\tUNIQUE (trial_id, objective), \
         \n\tFOREIGN KEY(trial_id) REFERENCES trials (trial_id)\n);\n\
         CREATE TABLE trial_intermediate_values (\n\ttrial_intermediate_value_id {key}, \n\ttrial_id INTEGER NOT NULL, \
         \n\tstep INTEGER NOT NULL, \n\tintermediate_value {float}, \
         \n\tintermediate_value_type {intermediate_type} NOT NULL, \n\tPRIMARY KEY (trial_intermediate_value_id), \
         \n\tUNIQUE (trial_id, step), \n\tFOREIGN KEY(trial_id) REFERENCES trials (trial_id)\n);\n\
         CREATE TABLE trial_heartbeats (\n\ttrial_heartbeat_id {key}, \n\ttrial_id INTEGER NOT NULL, \
         \n\theartbeat {datetime} NOT NULL, \n\tPRIMARY KEY (trial_heartbeat_id), \n\tUNIQUE (trial_id), \
         \n\tFOREIGN KEY(trial_id) REFERENCES trials (trial_id)\n);\n\
         CREATE TABLE alembic_version (\n\tversion_num VARCHAR(32) NOT NULL, \
         \n\tCONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n);\n\
         INSERT INTO version_info VALUES (1, 12, '3.6.1');\n\
         INSERT INTO alembic_version VALUES ('{REVISION}');\n"
    );
    script
}
