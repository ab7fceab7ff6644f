-- One review of an account for each package.
CREATE TABLE package_reviews (
    package TEXT NOT NULL,
    user_id BIGINT NOT NULL,
    rating BIGINT NOT NULL,
    message TEXT NOT NULL,
    version TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (package, user_id)
);
CREATE INDEX package_reviews_by_time ON package_reviews (package, updated_at, user_id);
CREATE INDEX package_reviews_by_user ON package_reviews (user_id, package);
