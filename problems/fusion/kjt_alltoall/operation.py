"""Jagged features from batch shards to feature shards: lengths, values, and their new order."""
import torch
import torch.distributed as dist


def operation(lengths, values, out_lengths, offsets, out_values) -> None:
    """lengths: [world * per, batch], out_lengths: [per, world * batch]; everything int32."""
    world, batch = dist.get_world_size(), lengths.shape[1]
    per = lengths.shape[0] // world
    came = torch.empty_like(lengths)
    dist.all_to_all_single(came, lengths)
    sent = lengths.view(world, -1).sum(dim=1).tolist()
    words = came.view(world, -1).sum(dim=1).tolist()
    by_source = torch.empty(sum(words), dtype=values.dtype, device=values.device)
    dist.all_to_all_single(by_source, values[: sum(sent)], words, sent)
    out_lengths.copy_(came.view(world, per, batch).transpose(0, 1).reshape(per, world * batch))
    offsets[0] = 0
    offsets[1:] = torch.cumsum(out_lengths.flatten(), 0)
    pieces = by_source.split(came.sum(dim=1).tolist())  # by source and feature
    ordered = [pieces[s * per + f] for f in range(per) for s in range(world)]
    out_values[: sum(words)] = torch.cat(ordered)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for per, batch, longest in ((2, 32, 8), (4, 64, 16)):
        shape, room = (world * per, batch), world * per * batch * longest
        lengths = torch.randint(0, longest + 1, shape, dtype=torch.int32, device="cuda")
        values = torch.randint(-(2**31), 2**31, (room,), dtype=torch.int32, device="cuda")
        out_lengths = torch.empty(per, world * batch, dtype=torch.int32, device="cuda")
        offsets = torch.empty(out_lengths.numel() + 1, dtype=torch.int32, device="cuda")
        operation(lengths, values, out_lengths, offsets, torch.empty_like(values))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
