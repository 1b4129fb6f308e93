"""Place of the true node among the negatives of a query; embeddings are sharded over ranks."""
import torch
import torch.distributed as dist


def operation(table, heads, positives, counts, negatives, place) -> None:
    """table: [rows, dim] int8, heads: [queries, dim] int8; all others int32."""
    world = dist.get_world_size()
    everything = torch.empty(world * table.shape[0], table.shape[1], dtype=torch.int8, device=table.device)
    dist.all_gather_into_tensor(everything, table)
    query = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts.long())
    entries = negatives[: len(query)]
    score = (heads[query].int() * everything[entries.long()].int()).sum(dim=1)
    at_stake = (heads.int() * everything[positives.long()].int()).sum(dim=1)[query]
    beats = (score > at_stake) | ((score == at_stake) & (entries < positives[query]))
    place.fill_(1)
    place.index_add_(0, query, beats.to(torch.int32))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for rows, quads, queries, most in ((64, 4, 16, 256), (256, 8, 64, 1024)):
        table = torch.randint(-2, 3, (rows, 16 * quads), dtype=torch.int8, device="cuda")
        heads = torch.randint(-2, 3, (queries, 16 * quads), dtype=torch.int8, device="cuda")
        positives = torch.randint(0, world * rows, (queries,), dtype=torch.int32, device="cuda")
        negatives = torch.randint(0, world * rows, (most,), dtype=torch.int32, device="cuda")
        counts = torch.full((queries,), most // queries, dtype=torch.int32, device="cuda")
        operation(table, heads, positives, counts, negatives, torch.empty_like(positives))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
